package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Tenant is a team with its own namespace on the clusters of some environments.
type Tenant struct {
	Name string `json:"name"`
	// Environments that have the tenant, in the order of fleet.yaml.
	Environments []TenantEnvironment `json:"environments"`
}

// TenantEnvironment is the role of a tenant's people in an environment.
type TenantEnvironment struct {
	Name string `json:"name"`
	// Cloud is the folder below tenants/.
	Cloud string `json:"cloud"`
	// Role is the cluster role of Group. Both are empty if the file has another form.
	Role  string `json:"role,omitempty"`
	Group string `json:"group,omitempty"`
	// Partly says that some clusters of the environment in this cloud do not have the tenant: another management cluster makes them, and the
	// tenant's file is not in their folder.
	Partly bool `json:"partly,omitempty"`
}

// Tenants lists all tenants by name, as the folders below tenants/ have them.
func (r *Repo) Tenants() ([]Tenant, error) {
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	byName := map[string]*Tenant{}
	for _, l := range r.layouts() {
		for _, env := range r.EnvironmentNames() {
			names, err := r.folders(path.Dir(l.Tenant(env, "x")))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				t := byName[name]
				if t == nil {
					t = &Tenant{Name: name}
					byName[name] = t
				}
				e := TenantEnvironment{Name: env, Cloud: l.Cloud}
				if !slices.ContainsFunc(t.Environments, func(o TenantEnvironment) bool { return o.Name == env && o.Cloud == l.Cloud }) {
					e.Role, e.Group = r.tenantRole(path.Join(l.Tenant(env, name), "role-binding.yaml"))
					e.Partly = r.hasPartly(places, l.Cloud, env, name)
					t.Environments = append(t.Environments, e)
				}
			}
		}
	}
	all := make([]Tenant, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, *byName[name])
	}
	return all, nil
}

// hasPartly tells whether only some clusters of an environment in a cloud have a tenant. places are those of all clusters.
func (r *Repo) hasPartly(places []place, cloud, environment, tenant string) bool {
	has := func(l layout.Layout) bool { return l.Cloud == cloud && r.exists(l.TenantFile(environment, tenant)) }
	return slices.ContainsFunc(r.layouts(), has) && slices.ContainsFunc(places, func(p place) bool {
		return p.environment == environment && p.at.Cloud == cloud && r.runsFlux(p.target()) && !has(p.at)
	})
}

// tenantRole reads the role and the group of a role binding. Both are empty for another object.
func (r *Repo) tenantRole(file string) (role, group string) {
	src, err := r.read(file)
	if err != nil {
		return "", ""
	}
	documents, err := yamledit.Parse(src)
	if err != nil || len(documents) == 0 {
		return "", ""
	}
	return text(yamledit.Find(documents[0], "roleRef", "name")), text(yamledit.Find(documents[0], "subjects", 0, "name"))
}

// layouts are the layouts of the management clusters for all their clouds, each once.
func (r *Repo) layouts() []layout.Layout {
	var all []layout.Layout
	for i := range r.Fleet.Spec.ManagementClusters {
		for _, l := range r.Fleet.Layouts(&r.Fleet.Spec.ManagementClusters[i]) {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}

// TenantOptions say in which environments a tenant is, and what its people may do.
type TenantOptions struct {
	// Environments; empty means all environments in fleet.yaml.
	Environments []string
	// Group of the tenant's people; "" means the tenant's name.
	Group string
	// Role of the tenant's people; "" is view in production and admin elsewhere.
	Role string
	// Source is the repository of an application with the tenant's name; nil for none.
	Source *scaffold.AppSource
}

// AddTenant adds a tenant to environments. Existing files stay as they are. Errors: bad names, an unknown environment.
func (r *Repo) AddTenant(name string, opts TenantOptions) (*Edit, error) {
	environments, err := r.chosen(opts.Environments)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Add tenant %s to %s", name, strings.Join(environments, ", ")), Environments: environments}
	for _, l := range r.layouts() {
		for _, env := range environments {
			if !r.uses(l, env) {
				continue
			}
			declared, _ := r.Fleet.Environment(env)
			files, err := scaffold.TenantFiles(scaffold.TenantOptions{
				Name: name, Group: opts.Group, Role: opts.Role, Layout: l, Environment: env, Production: declared.IsProduction(),
			})
			if err != nil {
				return nil, err
			}
			if err := r.withApps(e, l, env); err != nil {
				return nil, err
			}
			e.Changes.Write(scaffold.Missing(files, r.exists)...)
			if err := r.enlist(&e.Changes, l.Apps(env), l.TenantFile(env, name), true); err != nil {
				return nil, err
			}
		}
	}
	if opts.Source != nil {
		if err := r.addApps(e, name, name, *opts.Source, environments); err != nil {
			return nil, err
		}
	}
	var targets []scaffold.FeatureTarget
	for _, env := range environments {
		targets = append(targets, scaffold.FeatureTarget{Environment: env})
	}
	e.Notes, err = r.noteFluxless(e.Notes, targets)
	return e, err
}

// withApps completes the folder that an environment's clusters share. Without a kustomization.yaml there, the management cluster would
// apply the clusters' manifests to itself. Without a file that is always there, a cluster's Flux would find no folder after the last tenant
// is removed.
func (r *Repo) withApps(e *Edit, l layout.Layout, environment string) error {
	files, err := scaffold.EnvironmentFolder(l, scaffold.Environment{Name: environment})
	if err != nil {
		return err
	}
	for _, f := range scaffold.Missing(files, r.exists) {
		if f.Path != l.ClustersFile(environment) {
			e.Changes.Write(f)
		}
	}
	return nil
}

// chosen returns the named environments, or all.
func (r *Repo) chosen(given []string) ([]string, error) {
	known := r.EnvironmentNames()
	if len(given) == 0 {
		if len(known) == 0 {
			return nil, diag.Errorf("`fleetctl environment add dev` makes one", "there is no environment")
		}
		return known, nil
	}
	for _, name := range given {
		if !slices.Contains(known, name) {
			return nil, unknownEnvironment(name, known)
		}
	}
	return once(given), nil
}

// RemoveTenant removes a tenant from environments, or from all. With its last environment, it removes the tenant's
// shared files, too. Errors: an unknown tenant or environment.
func (r *Repo) RemoveTenant(name string, environments []string) (*Edit, error) {
	all, err := r.Tenants()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t Tenant) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.Name)
		}
		return nil, unknownTenant(name, names)
	}
	chosen, err := r.chosen(environments)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Remove tenant " + name, Environments: chosen}
	if len(environments) > 0 {
		e.Summary += " from " + strings.Join(environments, ", ")
	}
	var had []string // the environments that had the tenant
	for _, l := range r.layouts() {
		left := false
		for _, env := range r.EnvironmentNames() {
			if !slices.Contains(chosen, env) {
				left = left || r.exists(l.Tenant(env, name))
				continue
			}
			if r.exists(l.TenantFile(env, name)) || r.exists(l.Tenant(env, name)) {
				had = append(had, env)
			}
			e.Changes.Delete(l.TenantFile(env, name))
			if err := r.enlist(&e.Changes, l.Apps(env), l.TenantFile(env, name), false); err != nil {
				return nil, err
			}
			if err := r.deleteFolder(&e.Changes, l.Tenant(env, name)); err != nil {
				return nil, err
			}
		}
		if !left {
			if err := r.deleteFolder(&e.Changes, l.Tenant("", name)); err != nil {
				return nil, err
			}
		}
	}
	e.Environments = sortedSet(had)
	e.Notes = append(e.Notes, fmt.Sprintf(
		"This deletes the namespace %s, with everything that runs or is stored there, on every cluster of %s.",
		name, strings.Join(e.Environments, ", ")))
	return e, nil
}

// deleteFolder removes all files below a folder.
func (r *Repo) deleteFolder(cs *manifest.ChangeSet, dir string) error {
	root := filepath.Join(r.Dir, filepath.FromSlash(dir))
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(r.Dir, name)
		cs.Delete(filepath.ToSlash(relative))
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list the files in %s: %w", dir, err)
	}
	return nil
}

// TenantNames are the names of all tenants.
func (r *Repo) TenantNames() []string {
	all, err := r.Tenants()
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(all))
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names
}

// unknownTenant is the error for a name that is not among the known tenants.
func unknownTenant(name string, known []string) error {
	return diag.Unknown("tenant", name, known, "`fleetctl tenant add "+name+"` makes one")
}
