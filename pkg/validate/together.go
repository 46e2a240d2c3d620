package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// together merges findings at one line about one object that is missing on several management clusters.
func (s *resolver) together(all diag.Findings) diag.Findings {
	where := map[said][]string{}
	key := func(f diag.Finding) (said, string) {
		lacks, ok := s.lacks[sayingOf(f)]
		head, cut := strings.CutSuffix(f.Summary, " on "+lacks.place.String())
		if !ok || lacks.place.target != "" || !cut {
			return said{}, ""
		}
		return said{f.File, f.Line, f.Rule, head}, lacks.place.mgmt
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

// oncePerNamespace merges the warnings about objects of one namespace that may be missing, and those about one source.
func (s *resolver) oncePerNamespace(all diag.Findings) diag.Findings {
	doubted := func(f diag.Finding) (known, bool) {
		lacks, ok := s.lacks[sayingOf(f)]
		return lacks, ok && (f.Rule == RuleMissingNS || f.Rule == RuleMissingSource) && f.Severity == diag.SeverityWarning &&
			s.run.saidTogether(f)
	}
	first, objects := map[known]diag.Finding{}, map[known]int{}
	for _, f := range all {
		namespace, ok := doubted(f)
		if !ok {
			continue
		}
		if there, told := first[namespace]; !told || cmp.Or(cmp.Compare(f.File, there.File), cmp.Compare(f.Line, there.Line)) < 0 {
			first[namespace] = f
		}
		objects[namespace]++
	}
	out := slices.DeleteFunc(slices.Clone(all), func(f diag.Finding) bool {
		namespace, ok := doubted(f)
		return ok && sayingOf(f) != sayingOf(first[namespace])
	})
	for i, f := range out {
		namespace, ok := doubted(f)
		if n := objects[namespace]; ok && n > 1 {
			which := "in it"
			if f.Rule == RuleMissingSource {
				which = "that name it"
			}
			out[i].Hint = strings.TrimSuffix(fmt.Sprintf("it is said once for all objects %s (%d); %s", which, n, f.Hint), "; ")
		}
	}
	return out
}

// listOf lists the first few names and the number of the others.
func listOf(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
