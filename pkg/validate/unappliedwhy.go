package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// reason says why nothing applies a file, by the nearest kustomization.yaml.
func (u *passedOver) reason(f *file) (summary, hint string) {
	for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
		for _, name := range layout.KustomizationNames() {
			at := path.Join(dir, name)
			if !u.tree.has(at) || at == f.path {
				continue
			}
			if base := path.Dir(f.path); layout.IsKustomization(f.path) {
				// If that kustomization.yaml named the base, it would apply the base. But other folders build on a base.
				return at + " does not name its folder", "name " + base +
					" in the kustomization.yaml of the folder that builds on it, such as namespaced; or delete it"
			}
			return at + " does not name it", "name " + strings.TrimPrefix(f.path, dir+"/") + " under resources there, or delete it"
		}
	}
	parts := strings.Split(f.path, "/")
	if parts[0] == layout.FeaturesDir && len(parts) > 3 {
		if meant := misspelt(parts[2]); meant != "" {
			return "a feature has no folder " + parts[2], "did you mean " + meant + "?"
		}
	}
	if parts[0] == layout.FeaturesDir {
		return "a feature has the folders " + strings.Join(layout.Scopes(), " and "), "move it to one of them"
	}
	if parts[0] == "tenants" && len(parts) > 4 {
		return "no Flux Kustomization has the folder " + path.Dir(f.path),
			"`" + diag.ShellCommand("fleetctl", "tenant", "add", parts[3]) + "` gives a tenant to an environment; or delete it"
	}
	return "no Flux Kustomization has the folder " + path.Dir(f.path), "move it to a folder that is applied, or delete it"
}

// misspelt returns the scope of layout.Scopes that name is a misspelling of; "" if it is none.
func misspelt(name string) string {
	scopes := layout.Scopes()
	if slices.Contains(scopes, name) {
		return ""
	}
	lower := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, scope := range scopes {
		if lower == scope || lower+"d" == scope || lower+"s" == scope || lower == strings.ReplaceAll(scope, "-", "") ||
			lower+"d" == strings.ReplaceAll(scope, "-", "") {
			return scope
		}
	}
	return diag.Nearest(lower, scopes)
}

// commonReason says why no cluster of an environment applies a file that the clusters share, and what to do.
func (u *passedOver) commonReason(l layout.Layout, environment, common string, f *file) (summary, hint string) {
	folder, _, nested := strings.Cut(strings.TrimPrefix(f.path, common+"/"), "/")
	scoped := nested && slices.Contains(layout.Scopes(), folder)
	switch c := u.fluxless(l, environment); {
	case scoped && c != nil:
		return fmt.Sprintf("no cluster of %s runs Flux", environment), u.givesFlux(c)
	case scoped && !u.wired(path.Join(common, folder)):
		return fmt.Sprintf("no cluster of %s has the folder %s", environment, path.Join(common, folder)),
			"`" + diag.ShellCommand("fleetctl", "environment", "wire", environment) + "` lets Flux apply the folder to each of them"
	case nested && misspelt(folder) != "" && !slices.Contains([]string{"apps", "sync", layout.FluxDir}, folder):
		return "there is no folder " + folder + " in the layout", "did you mean " + misspelt(folder) + "?"
	}
	return u.reason(f)
}

// wired tells whether clusters apply a folder, or will apply it as soon as there are any.
func (u *passedOver) wired(dir string) bool {
	return u.paths[dir] || slices.ContainsFunc(u.tree.below(dir), func(f *file) bool { return u.read[f.path] })
}

// withoutFlux tells whether the chart of a cluster says that its API server can run no Flux.
func (r *run) withoutFlux(c *cluster) bool {
	if c.declared == nil {
		return false
	}
	chart := r.tree.byPath[path.Join(layout.ChartsDir, c.declared.Flavour, "Chart.yaml")]
	if chart == nil || len(chart.documents) != 1 {
		return false
	}
	return mapping.Fields(chart.documents[0].object).Text("annotations", "fleetctl.dev/flux") == "none"
}

// givesFlux is the hint for files that reach a cluster by Flux only, which it does not have.
func (u *passedOver) givesFlux(c *cluster) string {
	if u.withoutFlux(c) {
		return fmt.Sprintf("remove it: flavour %s cannot run Flux", c.declared.Flavour)
	}
	return "`" + diag.ShellCommand("fleetctl", "cluster", "flux", c.environment+"/"+c.name) + "` gives Flux to the cluster"
}

// clusterReason is reason for a file in the folder of a cluster.
func (u *passedOver) clusterReason(c *cluster, f *file) (summary, hint string) {
	folder, _, nested := strings.Cut(strings.TrimPrefix(f.path, c.dir+"/"), "/")
	switch {
	case nested && slices.Contains(layout.Scopes(), folder) && !u.tree.has(path.Join(c.dir, layout.FluxFile)):
		return fmt.Sprintf("cluster %s runs no Flux", c.name), u.givesFlux(c)
	case nested && slices.Contains(layout.Scopes(), folder) && !u.paths[path.Join(c.dir, folder)]:
		return fmt.Sprintf("cluster %s does not have the folder %s", c.name, path.Join(c.dir, folder)), wires(c.environment)
	case nested && misspelt(folder) != "":
		return "there is no folder " + folder + " in the layout", "did you mean " + misspelt(folder) + "?"
	}
	return u.reason(f)
}
