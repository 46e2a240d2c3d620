package fleetrepo

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// Reseal converts a file of one fleet repo for another one: it encrypts values for the other repo's keys, and replaces the fleet's name and
// identity.
type Reseal func(name string, content []byte) ([]byte, error)

// OwnRepo returns the first files for a management cluster's own repository: a fleet.yaml with everything that this
// repo declares for it, and all files that belong to it. These files have no identity yet. Errors: the management
// cluster follows this repo already, or it needs a file that exists only beside this fleet.yaml.
func (r *Repo) OwnRepo(name string, reseal Reseal) ([]manifest.File, error) {
	m, err := r.managementCluster(name)
	if err != nil {
		return nil, err
	}
	if m.Repository == nil {
		return nil, diag.Usage("declare one: repository in "+v1alpha1.FileName, "management cluster %s has no repository of its own", name)
	}
	if flux := path.Join(m.Dir(), layout.FluxDir); r.exists(flux) {
		return nil, diag.Errorf("`fleetctl teardown --management "+name+"` first, or leave repository out of "+v1alpha1.FileName,
			"management cluster %s follows this repository already: its Flux is in %s", name, flux)
	}
	fleet, beside, err := r.ownFleet(m)
	if err != nil {
		return nil, err
	}
	content, err := v1alpha1.Marshal(fleet)
	if err != nil {
		return nil, err
	}
	names, err := r.ownedFiles(m)
	if err != nil {
		return nil, err
	}
	files, err := r.resealed(append(names, beside...), reseal)
	if err != nil {
		return nil, err
	}
	more, err := r.referred(files, reseal, func(string) bool { return false })
	return slices.Concat([]manifest.File{{Path: v1alpha1.FileName, Content: content}}, files, more), err
}

// ownFleet returns the fleet of a management cluster with its own repository, and the files that its fleet.yaml names.
func (r *Repo) ownFleet(m *v1alpha1.ManagementCluster) (*v1alpha1.Fleet, []string, error) {
	own := *m
	own.Repository = nil
	fleet := &v1alpha1.Fleet{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: cmp.Or(m.Repository.Fleet, m.Name)},
		Spec: v1alpha1.FleetSpec{Git: m.Repository.Git, Flux: r.Fleet.Spec.Flux, ManagementClusters: []v1alpha1.ManagementCluster{own}},
	}
	wanted := slices.Clone(m.Repository.Environments)
	places, err := r.places("")
	if err != nil {
		return nil, nil, err
	}
	for _, p := range places { // the environment of the cluster that it runs on, and the environments with clusters for it in this repo
		if p.mgmt == m || p.mgmt.Name == m.Parent && p.name() == m.Name {
			wanted = append(wanted, p.environment)
		}
	}
	for _, environment := range r.Fleet.Spec.Environments {
		if !slices.Contains(wanted, environment.Name) {
			continue
		}
		fleet.Spec.Environments = append(fleet.Spec.Environments, environment)
		at := slices.IndexFunc(r.Fleet.Spec.Channels, func(c v1alpha1.Channel) bool { return c.Name == environment.Channel })
		if at >= 0 && !slices.Contains(fleet.Spec.Channels, r.Fleet.Spec.Channels[at]) {
			fleet.Spec.Channels = append(fleet.Spec.Channels, r.Fleet.Spec.Channels[at])
		}
	}
	var beside []string
	for _, file := range []string{m.Repository.Git.CAFile, m.Vault.CAFile} {
		if file != "" && !filepath.IsAbs(file) {
			beside = append(beside, path.Clean(filepath.ToSlash(file)))
		}
	}
	for _, file := range []string{m.Vault.TokenFile, m.Vault.JWTFile} {
		if file != "" && !filepath.IsAbs(file) {
			return nil, nil, diag.Errorf("give its path from the root",
				"the token for Vault of management cluster %s is in the file %s beside this %s, and %s has a repository of its own",
				m.Name, file, v1alpha1.FileName, m.Name)
		}
	}
	for _, p := range m.Providers {
		for _, v := range p.Variables {
			if v.File != "" && !filepath.IsAbs(v.File) {
				return nil, nil, diag.Errorf("give its path from the root, or another source: env, command or vault",
					"variable %s of provider %s of management cluster %s comes from the file %s beside this %s, and %s has a repository of its own",
					v.Name, p.Name, m.Name, v.File, v1alpha1.FileName, m.Name)
			}
		}
	}
	return fleet, beside, v1alpha1.Validate(fleet).Err()
}

// resealed returns files of the repo, converted for another one.
func (r *Repo) resealed(names []string, reseal Reseal) ([]manifest.File, error) {
	files := make([]manifest.File, 0, len(names))
	for _, name := range names {
		content, err := r.generated(name)
		if err == nil && content == nil {
			err = diag.Errorf("", "%s is not there", name)
		}
		if err == nil && reseal != nil {
			content, err = reseal(name, content)
		}
		if err != nil {
			return nil, diag.Wrap("bring "+name+" along", err, "")
		}
		files = append(files, manifest.File{Path: name, Content: content})
	}
	return files, nil
}

// reference is a place where a file names a folder that several clusters share.
var reference = regexp.MustCompile(`(?:^|[^A-Za-z0-9._/-]|\./)((?:` + layout.ChartsDir + `|` + layout.FeaturesDir + `|` + layout.AddonsDir +
	`|tenants)/[A-Za-z0-9._/-]+)`)

// sharedFolder returns the whole shared folder with the target of the reference: a chart, or a feature with all of its
// variants.
func sharedFolder(ref string) string {
	parts := strings.Split(path.Clean(ref), "/")
	if parts[0] == layout.ChartsDir || parts[0] == layout.FeaturesDir {
		return path.Join(parts[:min(2, len(parts))]...)
	}
	return path.Clean(ref)
}

// referred returns the files in shared folders that files refer to, directly or through each other, without folders that the other repo
// already has.
func (r *Repo) referred(files []manifest.File, reseal Reseal, has func(dir string) bool) ([]manifest.File, error) {
	var all []manifest.File
	seen := map[string]bool{}
	for len(files) > 0 {
		var names []string
		for _, f := range files {
			for _, match := range reference.FindAllSubmatch(f.Content, -1) {
				dir := sharedFolder(string(match[1]))
				if seen[dir] || has(dir) {
					continue
				}
				seen[dir] = true
				below, err := r.filesBelow(dir)
				if err != nil {
					return nil, err
				}
				if err := r.onlyFiles(dir); err != nil {
					return nil, err
				}
				names = append(names, below...)
			}
		}
		names = slices.DeleteFunc(sortedSet(names), func(name string) bool {
			return slices.ContainsFunc(all, func(f manifest.File) bool { return f.Path == name })
		})
		var err error
		if files, err = r.resealed(names, reseal); err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// MoveToOwnRepo removes from this repo what a management cluster's own repository has by now. into is a clone of that
// repository. A file that the repository lacks is an error, because no repository would have it afterwards.
func (r *Repo) MoveToOwnRepo(name string, into *Repo) (*Edit, error) {
	m, err := r.managementCluster(name)
	if err != nil {
		return nil, err
	}
	owned := m.Layout().Owned()
	e := &Edit{Summary: "Move management cluster " + name + " to a repository of its own", AsWanted: owned + " is not here"}
	if m.Repository == nil {
		return e, nil
	}
	names, err := r.ownedFiles(m)
	if err != nil {
		return nil, err
	}
	if missing := slices.DeleteFunc(names, into.exists); len(missing) > 0 {
		return nil, diag.Errorf("copy them into the clone in "+into.Dir+
			", commit and push it there, or remove them here; encrypted ones have to be encrypted for the keys there",
			"the fleet repo of %s does not have what this one has for it: %s", name, strings.Join(missing, ", "))
	}
	for _, l := range r.Fleet.Layouts(m) {
		if err := r.deleteFolder(&e.Changes, l.Owned()); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// ownedFiles returns the files that belong to a management cluster alone: in the folders of its generation, in all its
// clouds.
func (r *Repo) ownedFiles(m *v1alpha1.ManagementCluster) ([]string, error) {
	var all []string
	for _, l := range r.Fleet.Layouts(m) {
		names, err := r.filesBelow(l.Owned())
		if err == nil {
			err = r.onlyFiles(l.Owned())
		}
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, nil
}
