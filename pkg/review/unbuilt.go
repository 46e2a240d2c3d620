package review

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// Unchanged is the sentence for a report without impact. It claims nothing of what could not be rendered.
func (r *Report) Unchanged() string {
	if r.Problems.Err() != nil {
		return "Nothing changes in what can be rendered. As long as the rest has errors, Flux neither applies it nor deletes anything of it."
	}
	return "Nothing changes: Flux would apply the same."
}

// compared compares the objects of two sides. What lacks on one side only because something could not be built there is left out: a finding
// reports that, and Flux deletes nothing of a Kustomization that it cannot build, or of a HelmRelease that it cannot render.
func compared(before, after *render.Result) []ObjectChange {
	all := compare(before.Objects, after.Objects, unbuiltIn(before, after))
	for i := range all {
		all[i].File = firstOf(all[i].new, all[i].old).Source.File
	}
	return slices.DeleteFunc(all, func(c ObjectChange) bool {
		return c.Action == Added && unbuilt(before.Findings, c.new.Source.File)
	})
}

// unbuilt tells whether a file is in a folder that could not be built.
func unbuilt(findings diag.Findings, file string) bool {
	return slices.ContainsFunc(findings, func(f diag.Finding) bool {
		folder := f.File
		if layout.IsKustomization(folder) {
			folder = path.Dir(folder)
		}
		return f.Severity == diag.SeverityError && strings.HasPrefix(file, folder+"/")
	})
}

// mostLevels is how many Kustomizations, each of which applies the next, are followed from an object up. A hostile repo may have a circle.
const mostLevels = 32

// applier is a Kustomization or a HelmRelease of a management cluster or of one of its workload clusters.
type applier struct {
	managementCluster string
	owner             render.Owner
}

// unbuiltIn returns a function that tells whether an object of before may be missing in after, on one of its targets, only because what
// applies it is incomplete there: its Kustomization or HelmRelease, or one of those that apply these.
func unbuiltIn(before, after *render.Result) func(o *render.Object, target string) bool {
	incomplete, declared := map[applier][][]string{}, map[applier][]*render.Object{}
	for _, k := range after.Kustomizations {
		if k.Incomplete {
			at := applier{k.ManagementCluster, k.Owner}
			incomplete[at] = append(incomplete[at], k.Targets)
		}
	}
	for _, r := range after.Releases {
		if !r.Rendered {
			at := applier{r.Object.ManagementCluster, r.Owner}
			incomplete[at] = append(incomplete[at], r.Object.Targets)
		}
	}
	if len(incomplete) == 0 {
		return func(*render.Object, string) bool { return false }
	}
	for _, o := range before.Objects {
		if o.Kind == render.KindKustomization || o.Kind == render.KindHelmRelease {
			at := applier{o.ManagementCluster, render.Owner{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
			declared[at] = append(declared[at], o)
		}
	}
	return func(o *render.Object, target string) bool {
		for range mostLevels {
			at := applier{o.ManagementCluster, o.Owner}
			if slices.ContainsFunc(incomplete[at], func(targets []string) bool { return reaches(targets, target) }) {
				return true
			}
			i := slices.IndexFunc(declared[at], func(by *render.Object) bool { return reaches(by.Targets, target) })
			if i < 0 {
				return false
			}
			o = declared[at][i]
		}
		return false
	}
}

// reaches tells whether what has the targets may apply objects to the target: it is for this target, or on the management cluster.
func reaches(targets []string, target string) bool {
	return len(targets) == 0 || slices.Contains(targets, target)
}
