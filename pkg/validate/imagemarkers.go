package validate

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// imageMarker is the comment by which image automation finds a line: the namespace and name of its policy, and what to write.
var imageMarker = regexp.MustCompile(`\{"\$imagepolicy": *"([^":]+:[^":]+)(:[a-z]+)?"\}`)

// checkImageMarkers reports the marked lines whose ImagePolicy does not exist: image automation skips them without a word. Policies may
// also come from elsewhere, so the namespace has to have others in the repo, or one has nearly that name.
func (r *run) checkImageMarkers(all []*object) (out diag.Findings) {
	policies, namespaces := map[string]bool{}, map[string]bool{}
	for _, o := range all {
		if o.Kind == "ImagePolicy" && o.gvk().Group == "image.toolkit.fluxcd.io" {
			policies[o.Namespace+":"+o.Name], namespaces[o.Namespace] = true, true
		}
	}
	if len(policies) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(policies))
	for _, f := range r.tree.files {
		if f.excluded || f.documents == nil || !bytes.Contains(f.content, []byte("$imagepolicy")) {
			continue
		}
		line := 0
		for text := range strings.Lines(string(f.content)) {
			line++
			m := imageMarker.FindStringSubmatchIndex(text)
			if len(m) == 0 || policies[text[m[2]:m[3]]] {
				continue
			}
			name := text[m[2]:m[3]]
			namespace, _, _ := strings.Cut(name, ":")
			hint := "correct the name, or add the policy" + sayInComment + RuleMissingObject + " reason"
			if nearest := diag.Nearest(name, names); nearest != "" {
				hint = "did you mean " + nearest + "?"
			} else if !namespaces[namespace] {
				continue
			}
			out = append(out, finding(RuleMissingObject, f.path, line, m[2]+1,
				fmt.Sprintf("there is no ImagePolicy %s: image automation skips the line", strings.Replace(name, ":", "/", 1)), hint))
		}
	}
	return out
}
