package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// App is an application of a tenant in one environment. It comes from its own repository.
type App struct {
	Name        string `json:"name"`
	Tenant      string `json:"tenant"`
	Environment string `json:"environment"`
	// Cloud is the folder below tenants/.
	Cloud string `json:"cloud"`
	// URL, Revision and Path say what is applied. They are empty if the file has another form.
	URL      string `json:"url,omitempty"`
	Revision string `json:"revision,omitempty"`
	Path     string `json:"path,omitempty"`
}

// Apps lists the applications of all tenants: by environment, tenant and name.
func (r *Repo) Apps() ([]App, error) {
	tenants, err := r.Tenants()
	if err != nil {
		return nil, err
	}
	var all []App
	for _, l := range r.layouts() {
		for _, env := range r.EnvironmentNames() {
			for _, t := range tenants {
				names, err := r.files(l.Tenant(env, t.Name), scaffold.AppPrefix)
				if err != nil {
					return nil, err
				}
				for _, name := range names {
					a := App{Name: name, Tenant: t.Name, Environment: env, Cloud: l.Cloud}
					r.readApp(&a, scaffold.AppFile(l, env, t.Name, name))
					if !slices.Contains(all, a) { // two generations share a cloud's tenants
						all = append(all, a)
					}
				}
			}
		}
	}
	return all, nil
}

// files returns the names of the YAML files in a folder that begin with a prefix, without the prefix and the ending.
func (r *Repo) files(dir, prefix string) ([]string, error) {
	entries, err := within.ReadDir(r.Dir, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), prefix); ok && e.Type().IsRegular() && path.Ext(name) == ".yaml" {
			names = append(names, strings.TrimSuffix(name, ".yaml"))
		}
	}
	return names, err
}

// readApp parses the file of an application.
func (r *Repo) readApp(a *App, file string) {
	src, err := r.read(file)
	if err != nil {
		return
	}
	documents, err := yamledit.Parse(src)
	if err != nil {
		return
	}
	for _, d := range documents {
		switch text(yamledit.Find(d, "kind")) {
		case "GitRepository":
			a.URL = text(yamledit.Find(d, "spec", "url"))
			for _, kind := range []string{"branch", "tag", "semver"} {
				if ref := text(yamledit.Find(d, "spec", "ref", kind)); ref != "" {
					a.Revision = ref
				}
			}
		case "Kustomization":
			a.Path = text(yamledit.Find(d, "spec", "path"))
		}
	}
}

// AddApp adds an application of a tenant to the named environments, or to all that have the tenant. Errors: an
// application of that name with another source, bad names, and a tenant that an environment does not have.
func (r *Repo) AddApp(tenant, name string, source scaffold.AppSource, environments []string) (*Edit, error) {
	all, err := r.Tenants()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t Tenant) bool { return t.Name == tenant })
	if i < 0 {
		return nil, unknownTenant(tenant, r.TenantNames())
	}
	chosen := environments
	if len(chosen) == 0 {
		for _, e := range all[i].Environments {
			if !slices.Contains(chosen, e.Name) {
				chosen = append(chosen, e.Name)
			}
		}
	} else if chosen, err = r.chosen(environments); err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Add application %s of tenant %s to %s", name, tenant, strings.Join(chosen, ", ")), Environments: chosen}
	for _, env := range chosen {
		if !slices.ContainsFunc(all[i].Environments, func(have TenantEnvironment) bool { return have.Name == env }) {
			return nil, diag.Errorf("`fleetctl tenant add "+tenant+" --environment "+env+"` adds it",
				"the environment %s does not have the tenant %s", env, tenant)
		}
	}
	return e, r.addApps(e, tenant, name, source, chosen)
}

// addApps adds the files of an application to an edit, and lists them in the tenant's folders. A cloud without the tenant gets none,
// because nothing would apply them there.
func (r *Repo) addApps(e *Edit, tenant, name string, source scaffold.AppSource, environments []string) error {
	var targets []scaffold.FeatureTarget
	for _, l := range r.layouts() {
		for _, env := range environments {
			dir := l.Tenant(env, tenant)
			coming := slices.ContainsFunc(e.Changes.Files(), func(f manifest.File) bool { return path.Dir(f.Path) == dir })
			if r.uses(l, env) && (coming || r.exists(dir)) {
				targets = append(targets, scaffold.FeatureTarget{Layout: l, Environment: env})
			}
		}
	}
	const instead = "leave this environment out with --environment"
	if err := r.checkFlux(e, "application "+name, instead, targets); err != nil {
		return err
	}
	for _, t := range targets {
		o := scaffold.AppOptions{AppSource: source, Name: name, Tenant: tenant, Layout: t.Layout, Environment: t.Environment}
		file, err := scaffold.App(o)
		if err != nil {
			return err
		}
		there, err := r.read(file.Path)
		switch {
		case err == nil && !manifest.SameText(there, file.Content):
			remove := diag.ShellCommand("fleetctl", "app", "remove", name, "--tenant", tenant, "--environment", t.Environment)
			return diag.Errorf("change it in an editor, or remove it first: `"+remove+"`",
				"%s exists already, and is another application", file.Path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		r.writeText(&e.Changes, file)
		if err := r.listed(&e.Changes, path.Dir(file.Path), path.Base(file.Path), true); err != nil {
			return err
		}
	}
	if source.Secret != "" {
		e.Notes = append(e.Notes,
			fmt.Sprintf("The Secret %s has to be in the namespace %s of the clusters: `fleetctl secret encrypt` makes one for the fleet repo.",
				source.Secret, tenant))
	}
	return nil
}

// RemoveApp removes an application from the named environments, or from all that have it. Error: an unknown
// application.
func (r *Repo) RemoveApp(tenant, name string, environments []string) (*Edit, error) {
	chosen, err := r.chosen(environments)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Remove application %s of tenant %s", name, tenant), Environments: chosen}
	found := false
	for _, l := range r.layouts() {
		for _, env := range chosen {
			file := scaffold.AppFile(l, env, tenant, name)
			if !r.exists(file) {
				continue
			}
			found = true
			e.Changes.Delete(file)
			if err := r.listed(&e.Changes, l.Tenant(env, tenant), path.Base(file), false); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		return nil, r.unknownApp(tenant, name)
	}
	e.Notes = append(e.Notes, fmt.Sprintf("Flux deletes what it has applied of %s in the namespace %s.", name, tenant))
	return e, nil
}

func (r *Repo) unknownApp(tenant, name string) error {
	if tenants := r.TenantNames(); !slices.Contains(tenants, tenant) {
		return unknownTenant(tenant, tenants)
	}
	all, err := r.Apps()
	if err != nil {
		return err
	}
	var names []string
	var where []string
	for _, a := range all {
		if a.Tenant == tenant && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
		if a.Tenant == tenant && a.Name == name {
			where = append(where, a.Environment)
		}
	}
	if len(where) > 0 {
		return diag.Usage("name one of these with --environment", "the application %s of the tenant %s is in no such environment, but in: %s",
			name, tenant, strings.Join(sortedSet(where), ", "))
	}
	return diag.Unknown("application", name, names, "the tenant "+tenant+" has none; `fleetctl app add` makes one")
}

// AppNames returns the names of all applications.
func (r *Repo) AppNames() []string {
	all, err := r.Apps()
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range all {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}
