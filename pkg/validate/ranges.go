package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// versionRange is a field of a Flux object with a range of versions. No schema can check it. checkRanges uses the library with which Flux
// reads it.
type versionRange struct {
	path string
	// over are fields beside it. If one of them is set, Flux ignores the range.
	over []string
	// from is the field with the kind of the source, if only some kinds have versions.
	from string
}

var versionRanges = map[string][]versionRange{
	"GitRepository": {{path: "spec.ref.semver", over: []string{"name", "commit"}}},
	"OCIRepository": {{path: "spec.ref.semver", over: []string{"digest"}}},
	"HelmRelease":   {{path: "spec.chart.spec.version", from: "spec.chart.spec.sourceRef.kind"}},
	"HelmChart":     {{path: "spec.version", from: "spec.sourceRef.kind"}},
	"ImagePolicy":   {{path: "spec.policy.semver.range"}},
}

// checkRanges reports fields that are no ranges of versions. A chart from a Git repository or a bucket has one version, so Flux ignores the
// field there.
func checkRanges(o *object, content map[string]any) diag.Findings {
	group := groupOf(o)
	if !strings.HasSuffix(group, ".toolkit.fluxcd.io") {
		return nil
	}
	var out diag.Findings
	for _, r := range versionRanges[o.Kind] {
		steps := strings.Split(r.path, ".")
		text := mapping.Fields(content).Text(steps...)
		beside := mapping.Fields(content).In(steps[:len(steps)-1]...)
		switch {
		case text == "" || strings.Contains(text, "${"):
		case r.from != "" && mapping.Fields(content).Text(strings.Split(r.from, ".")...) != "HelmRepository":
		case slices.ContainsFunc(r.over, func(f string) bool { return beside.Text(f) != "" }):
		default:
			if _, err := semver.NewConstraint(text); err != nil {
				out = append(out, o.at(r.path, RuleValue, fmt.Sprintf("%.80q is no range of versions", text),
					"write one such as 1.2.3, 1.2.x or '>=1.0.0 <2.0.0'"))
			}
		}
	}
	return out
}
