package fleetrepo

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// A folder without a kustomization.yaml is applied whole. If a person has written a kustomization.yaml, Flux applies only its resources: a
// file that a command adds to the folder would never be applied.

// kustomizationIn returns the path of a folder's kustomization.yaml, which may have any name that kustomize accepts; ""
// if there is none.
func (r *Repo) kustomizationIn(dir string) string {
	for _, name := range layout.KustomizationNames() {
		if file := path.Join(dir, name); r.exists(file) {
			return file
		}
	}
	return ""
}

// kustomizationWith returns the path and the text of a folder's kustomization.yaml, as the edit so far leaves or makes it; "" if there is
// none.
func (r *Repo) kustomizationWith(cs *manifest.ChangeSet, dir string) (name string, src []byte, err error) {
	for _, f := range cs.Files() {
		if path.Dir(f.Path) == dir && slices.Contains(layout.KustomizationNames(), path.Base(f.Path)) {
			return f.Path, f.Content, nil
		}
	}
	if name = r.kustomizationIn(dir); name != "" {
		src, err = r.read(name)
	}
	return name, src, err
}

// enlist adds a file to the resources of the kustomization.yaml that decides whether Flux applies the file. This is the
// nearest one between the file's folder and root, the folder that Flux applies. If want is false, enlist removes the
// file from the resources.
func (r *Repo) enlist(cs *manifest.ChangeSet, root, file string, want bool) error {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if r.kustomizationIn(dir) != "" {
			return r.listed(cs, dir, strings.TrimPrefix(file, dir+"/"), want)
		}
		if dir == root || dir == "." {
			return nil
		}
	}
}

// listed adds file to the resources of the kustomization.yaml in the folder dir, or removes it there. Without a kustomization.yaml it
// does nothing.
func (r *Repo) listed(cs *manifest.ChangeSet, dir, file string, want bool) error {
	return r.list(cs, dir, func(entries []string, src []byte) ([]byte, error) {
		switch i := slices.Index(entries, file); {
		case want && i < 0:
			return yamledit.Append(src, 0, yamledit.Path{"resources"}, &yaml.Node{Kind: yaml.ScalarNode, Value: file})
		case !want && i >= 0:
			return yamledit.RemoveItem(src, 0, yamledit.Path{"resources", i})
		}
		return src, nil
	})
}

// unlist removes a folder in dir, and all files in it, from the resources of the kustomization.yaml in dir, if there is one.
func (r *Repo) unlist(cs *manifest.ChangeSet, dir, folder string) error {
	return r.list(cs, dir, func(entries []string, src []byte) ([]byte, error) {
		var err error
		for i, entry := range slices.Backward(entries) {
			if entry != folder && !strings.HasPrefix(entry, folder+"/") {
				continue
			}
			if src, err = yamledit.RemoveItem(src, 0, yamledit.Path{"resources", i}); err != nil {
				return nil, err
			}
		}
		return src, nil
	})
}

// list changes the resources of the kustomization.yaml in dir, if there is one, also if the edit makes it. change gets the resources as
// clean paths, and the text of the file with the changes that the edit has made so far.
func (r *Repo) list(cs *manifest.ChangeSet, dir string, change func(entries []string, src []byte) ([]byte, error)) error {
	name, src, err := r.kustomizationWith(cs, dir)
	if err != nil || name == "" {
		return err
	}
	documents, err := documentsOf(name, src)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return findingsOf(name, diag.Errorf("delete it, or write `resources: []` into it", "it is empty, and kustomize reads no empty file"))
	}
	var entries []string
	if resources := yamledit.Find(documents[0], "resources"); resources != nil {
		for _, n := range resources.Content {
			entries = append(entries, path.Clean(text(n)))
		}
	}
	changed, err := change(entries, src)
	if err != nil {
		return diag.Wrap("change "+yamledit.At(name, err), err, "change the list of resources in an editor")
	}
	cs.Write(manifest.File{Path: name, Content: changed})
	return nil
}
