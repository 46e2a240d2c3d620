package fleetrepo

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// EnlistSecret adds the new file of a Secret to the resources of the kustomization.yaml that decides whether Flux applies the file: the
// nearest one from the Secret's folder up to the folder that Flux applies. Without one, it does nothing. If it cannot tell whether the
// kustomization.yaml above the Secret is meant for it, it leaves the list as it is, and a note says so. Errors: a kustomization.yaml that
// cannot be read or edited.
func (r *Repo) EnlistSecret(e *Edit, file string) error {
	dir := path.Dir(file)
	at, found := r.kustomizationAbove(dir)
	if !found || at == dir {
		return r.listed(&e.Changes, dir, path.Base(file), true)
	}
	folders, err := r.appliedFolders()
	if err != nil {
		return err
	}
	root, known := nearestOf(folders, dir)
	if known && !isBelow(at, root) {
		return nil // Flux applies a folder without a kustomization.yaml, as a whole
	}
	name, entry := r.kustomizationIn(at), relativeTo(at, file)
	if !known {
		if siblings, err := r.listsBelow(at, relativeTo(at, dir)); err != nil || !siblings {
			e.Notes = append(e.Notes, fmt.Sprintf("%s does not list it: if Flux is to apply it from there, add %s to its resources.", name, entry))
			return err
		}
	}
	e.Notes = append(e.Notes, fmt.Sprintf("%s lists it, so that Flux applies it.", name))
	return r.listed(&e.Changes, at, entry, true)
}

// kustomizationAbove returns the nearest folder with a kustomization.yaml: dir, or a folder above it in the repo.
func (r *Repo) kustomizationAbove(dir string) (at string, found bool) {
	for at = dir; ; at = path.Dir(at) {
		if r.kustomizationIn(at) != "" {
			return at, true
		}
		if at == "." {
			return "", false
		}
	}
}

// listsBelow tells whether the kustomization.yaml in the folder at lists a file of the folder below it.
func (r *Repo) listsBelow(at, folder string) (bool, error) {
	found := false
	err := r.list(&manifest.ChangeSet{}, at, func(entries []string, src []byte) ([]byte, error) {
		found = slices.ContainsFunc(entries, func(entry string) bool { return path.Dir(entry) == folder })
		return src, nil
	})
	return found, err
}

// appliedFolders returns the folders of the repo that Flux applies: the management clusters' own, and the paths of all Flux Kustomizations
// in the repo, except for those that apply another repository. A part of a path that Flux fills in is *.
func (r *Repo) appliedFolders() ([]string, error) {
	var folders []string
	for _, l := range r.layouts() {
		folders = append(folders, l.Management())
	}
	elsewhere := map[string]bool{} // sources of other repositories, by name
	bySource := map[string][]string{}
	ofFlux := func(src []byte) bool { return bytes.Contains(src, []byte(".toolkit.fluxcd.io/")) }
	err := r.eachDocument(".", ofFlux, func(_ string, document *yaml.Node) {
		switch text(yamledit.Find(document, "kind")) {
		case "GitRepository", "OCIRepository", "Bucket":
			if name := text(yamledit.Find(document, "metadata", "name")); !r.isOwnSource(name) {
				elsewhere[name] = text(yamledit.Find(document, "spec", "url")) != r.Fleet.Spec.Git.URL
			}
		case "Kustomization":
			if yamledit.Find(document, "spec") != nil {
				source := text(yamledit.Find(document, "spec", "sourceRef", "name"))
				bySource[source] = append(bySource[source], pathPattern(text(yamledit.Find(document, "spec", "path"))))
			}
		}
	})
	for source, paths := range bySource {
		if !elsewhere[source] {
			folders = append(folders, paths...)
		}
	}
	return folders, err
}

// isOwnSource tells whether a source of that name is the fleet repo: its branch, or a channel.
func (r *Repo) isOwnSource(name string) bool {
	return slices.ContainsFunc(r.Fleet.Channels(), func(c v1alpha1.Channel) bool { return c.Source() == name })
}

// pathPattern returns the path of a Flux Kustomization as a pattern of path.Match, from the top of the repo.
func pathPattern(dir string) string {
	if _, otherwise, ok := strings.Cut(dir, ":="); ok && strings.HasPrefix(dir, "${") {
		dir = strings.TrimSuffix(otherwise, "}")
	}
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+dir), "/"), "/")
	for i, part := range parts {
		if strings.Contains(part, "${") {
			parts[i] = "*"
		}
	}
	return path.Clean(path.Join(parts...))
}

// nearestOf returns the deepest of folders that is dir or above it.
func nearestOf(folders []string, dir string) (nearest string, found bool) {
	for at := dir; ; at = path.Dir(at) {
		if slices.ContainsFunc(folders, func(folder string) bool {
			matched, _ := path.Match(folder, at) // a folder whose name is no pattern matches nothing
			return matched || folder == at
		}) {
			return at, true
		}
		if at == "." {
			return "", false
		}
	}
}

// isBelow tells whether dir is root, or below it.
func isBelow(dir, root string) bool {
	return root == "." || dir == root || strings.HasPrefix(dir, root+"/")
}

// relativeTo returns the path of file, which is below dir, as a kustomization.yaml in dir names it.
func relativeTo(dir, file string) string { return strings.TrimPrefix(file, dir+"/") }
