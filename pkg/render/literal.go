package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// literal reports the variables that stay in an object as they are written, because its Flux Kustomization fills in none: it has no
// postBuild, or one without any variable. literal looks only at fields in which such a text means nothing to anybody else, so it ignores
// scripts, configurations and values of charts.
func (it *item) literal(c *content, v *variables) diag.Findings {
	if !bytes.Contains(c.json, []byte("${")) || bytes.Contains(c.json, []byte(substituteKey)) {
		return nil
	}
	var object map[string]any
	if json.Unmarshal(c.json, &object) != nil {
		return nil //nolint:nilerr // it has been read before
	}
	l := &literals{images: !strings.HasSuffix(groupOf(c), ".toolkit.fluxcd.io") && !isOfClusters(groupOf(c))}
	delete(object, "metadata") // the rules for names report it there
	l.look("", object)
	if len(l.names) == 0 {
		return nil
	}
	slices.Sort(l.names)
	names := strings.Join(slices.Compact(l.names), ", ")
	because := "has no postBuild"
	if v != nil {
		because = "finds no variables in the repo"
	}
	if v != nil && len(v.absent) > 0 {
		because = fmt.Sprintf("has its variables from the ConfigMap %.80s, which is not in the repo", strings.Join(v.absent, " or "))
	}
	return diag.Findings{{
		Severity: diag.SeverityWarning, Rule: RuleLiteral, File: c.source.File, Line: c.source.Line,
		Summary: fmt.Sprintf("%s %s: nothing fills in %.200s: %s %s", c.Kind, c.Metadata.Name, names, it.k.Owner, because),
		Hint:    "write the value, or give it in spec.postBuild of " + it.k.Owner.String(),
	}}
}

func groupOf(c *content) string {
	group, _, _ := strings.Cut(c.APIVersion, "/")
	return group
}

// isOfClusters tells whether a group is one of Cluster API, and not that of bootstrap data, which are scripts.
func isOfClusters(group string) bool {
	return strings.HasSuffix(group, "cluster.x-k8s.io") && !strings.HasPrefix(group, "bootstrap.")
}

// literals are the variables in the texts of an object.
type literals struct {
	// images says that only images of containers count.
	images bool
	names  []string
}

// literalVariable matches a variable as Flux fills it in. $${ is a literal ${ where Flux fills in variables.
var literalVariable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^$])(\$\{[_[:alpha:]][_[:alnum:]]*(?::?[-=][^}]*)?\})`)
})

// foreignText are fields of Flux and Cluster API with texts that others read: scripts, patches, messages, values and configurations, in
// which the same characters mean something else.
var foreignText = []string{
	"annotations", "commonMetadata", "data", "eventMetadata", "files", "ignition", "kubeadmConfigSpec", "messageTemplate", "patch", "patches",
	"postBuild", "postRenderers", "stringData", "summary", "update", "userData", "values",
}

// look adds the variables in the value of a field.
func (l *literals) look(field string, value any) {
	switch v := value.(type) {
	case string:
		if l.images && field != "image" || strings.Contains(v, "\n") {
			return
		}
		for _, m := range literalVariable().FindAllStringSubmatch(v, -1) {
			l.names = append(l.names, m[1])
		}
	case []any:
		for _, item := range v {
			l.look(field, item)
		}
	case map[string]any:
		for key, item := range v {
			if !slices.Contains(foreignText, key) && !strings.HasSuffix(key, "Commands") {
				l.look(key, item)
			}
		}
	}
}
