package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// together makes one finding of those that say of one line that the same is missing on several management clusters.
func (s *resolver) together(all diag.Findings) diag.Findings {
	where := map[said][]string{}
	key := func(f diag.Finding) (said, string) {
		p, ok := s.lacks[sayingOf(f)]
		head, cut := strings.CutSuffix(f.Summary, " on "+p.String())
		if !ok || p.target != "" || !cut {
			return said{}, ""
		}
		return said{f.File, f.Line, f.Rule, head}, p.mgmt
	}
	for _, f := range all {
		if k, name := key(f); name != "" && !slices.Contains(where[k], name) {
			where[k] = append(where[k], name)
		}
	}
	out := make(diag.Findings, 0, len(all))
	told := map[said]bool{}
	for _, f := range all {
		k, name := key(f)
		switch names := where[k]; {
		case name == "" || len(names) < 2:
			out = append(out, f)
		case !told[k]:
			told[k] = true
			f.Summary = k.summary + " on the management clusters " + listOf(names)
			out = append(out, f)
		}
	}
	return out
}

// listOf names a few of many.
func listOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
