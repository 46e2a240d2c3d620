package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// clusterFolder completes the folder of a cluster: it lists the files that the management cluster applies, and makes the folders for the
// cluster's own files. If the environment's files are listed, that list already says what is applied.
func (r *Repo) clusterFolder(cs *manifest.ChangeSet, opts scaffold.ClusterOptions) error {
	files, err := scaffold.ClusterFolder(opts)
	if err != nil {
		return err
	}
	dir := opts.Layout.Cluster(opts.Environment, opts.Name)
	for _, f := range files {
		switch {
		case path.Base(f.Path) == layout.KeepFile:
			if !r.exists(path.Dir(f.Path)) {
				cs.Write(f)
			}
		case r.kustomizationIn(dir) == "" && r.kustomizationIn(path.Dir(dir)) == "":
			if f, err = r.withListed(cs, f); err != nil {
				return err
			}
			cs.Write(f)
		}
	}
	return nil
}

// keepFolders adds the cluster's folders that its environment applies, if the cluster runs Flux, and otherwise removes them. Files that a
// person has put there stay.
func (r *Repo) keepFolders(cs *manifest.ChangeSet, at layout.Layout, environment, name string, want bool) error {
	files, err := scaffold.ClusterFolders(at, environment, name)
	if err != nil || !r.exists(at.FoldersFile(environment)) {
		return err
	}
	for _, f := range files {
		switch there := r.exists(path.Dir(f.Path)); {
		case want && !there:
			cs.Write(f)
		case !want && r.exists(f.Path):
			if content, err := r.read(f.Path); err == nil && manifest.SameText(content, f.Content) {
				cs.Delete(f.Path)
			}
		}
	}
	return nil
}

// withListed adds the other applied files of a folder to its kustomization.yaml, also files that this edit writes. Files in the cluster's
// own folders are not among them.
func (r *Repo) withListed(cs *manifest.ChangeSet, kustomization manifest.File) (manifest.File, error) {
	dir := path.Dir(kustomization.Path)
	there, err := r.filesBelow(dir)
	if err != nil {
		return kustomization, err
	}
	for _, f := range cs.Files() {
		if strings.HasPrefix(f.Path, dir+"/") {
			there = append(there, f.Path)
		}
	}
	var more []string
	for _, name := range sortedSet(there) {
		if entry := r.entry(dir, strings.TrimPrefix(name, dir+"/")); entry != "" && !slices.Contains(more, entry) {
			more = append(more, entry)
		}
	}
	content := string(kustomization.Content)
	for _, entry := range more {
		if line := "- " + entry + "\n"; !strings.Contains(content, line) {
			content += line
		}
	}
	return manifest.File{Path: kustomization.Path, Content: []byte(content)}, nil
}

// entry is the entry of a kustomization.yaml for a file in a cluster's folder: the file, or its folder if that has a kustomization.yaml;
// "" for a file that is not applied there.
func (r *Repo) entry(dir, name string) string {
	first, _, nested := strings.Cut(name, "/")
	if nested && slices.Contains(layout.Scopes(), first) {
		return ""
	}
	for at := first; nested && at != name; {
		if r.kustomizationIn(path.Join(dir, at)) != "" {
			return at
		}
		next, _, more := strings.Cut(strings.TrimPrefix(name, at+"/"), "/")
		if !more {
			break
		}
		at = path.Join(at, next)
	}
	if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" {
		return ""
	}
	return name
}

// WireFolders lets Flux apply the folders of the named environments (all if none is named) and of their clusters.
// Environments of an older fleetctl and clusters that a person has written need this. Existing files stay as they are.
// Error: an unknown environment.
func (r *Repo) WireFolders(given []string) (*Edit, error) {
	environments, err := r.chosen(given)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Let Flux apply the folders of " + strings.Join(environments, ", "), Environments: environments}
	for i := range r.Fleet.Spec.ManagementClusters {
		for _, environment := range environments {
			for _, at := range r.layoutsIn(&r.Fleet.Spec.ManagementClusters[i], environment) {
				if err := r.wire(e, at, environment); err != nil {
					return nil, err
				}
			}
		}
	}
	return e, nil
}

// wire is WireFolders for one environment of a management cluster in one cloud.
func (r *Repo) wire(e *Edit, at layout.Layout, environment string) error {
	names, err := r.folders(at.Environment(environment))
	if err != nil {
		return fmt.Errorf("list the clusters of %s: %w", environment, err)
	}
	for _, name := range names {
		dir := at.Cluster(environment, name)
		if name == layout.CommonDir || !r.exists(path.Join(dir, "cluster.yaml")) {
			continue
		}
		opts := scaffold.ClusterOptions{Name: name, Layout: at, Environment: environment}
		if r.exists(path.Join(dir, layout.FluxFile)) {
			opts.Flux = scaffold.FluxOwn
		}
		if err := r.clusterFolder(&e.Changes, opts); err != nil {
			return err
		}
	}
	if err := r.withApps(e, at, environment); err != nil {
		return err
	}
	files, err := scaffold.FolderFiles(at, environment)
	if err != nil {
		return err
	}
	for _, f := range files {
		if keeps := path.Base(f.Path) == layout.KeepFile; !keeps && !r.exists(f.Path) || keeps && !r.exists(path.Dir(f.Path)) {
			e.Changes.Write(f)
		}
	}
	return r.enlist(&e.Changes, at.Apps(environment), at.FoldersFile(environment), true)
}
