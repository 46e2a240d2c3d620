package roots

import (
	"io/fs"
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// reach has the files that Flux reads to build folders: all YAML below a folder, or the files that the kustomization.yaml of a folder
// names. It only serves to find where Flux begins, so it skips unreadable files.
type reach struct {
	files fs.FS
	read  map[string]bool
	dirs  map[string]bool
}

func newReach(files fs.FS, dirs ...string) *reach {
	r := &reach{files: files, read: map[string]bool{}, dirs: map[string]bool{}}
	for _, dir := range dirs {
		r.folder(dir)
	}
	return r
}

// folder adds the files that Flux reads to build a folder.
func (r *reach) folder(dir string) {
	if r.dirs[dir] {
		return
	}
	r.dirs[dir] = true
	if r.kustomization(dir) {
		return
	}
	_ = fs.WalkDir(r.files, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be listed is not read
		case entry.IsDir() && name != dir && (entry.Name() == ".git" || r.kustomization(name)):
			return fs.SkipDir
		case entry.Type().IsRegular() && (path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"):
			r.read[name] = true
		}
		return nil
	})
}

// kustomization adds the files that the kustomization.yaml of a folder names. It returns false if there is no such file.
func (r *reach) kustomization(dir string) bool {
	for _, base := range layout.KustomizationNames() {
		name := path.Join(dir, base)
		content, err := fs.ReadFile(r.files, name)
		if err != nil {
			continue
		}
		r.dirs[dir], r.read[name] = true, true
		documents, err := yamledit.ParseWithin(content, yamledit.ReadLimits)
		if err != nil || len(documents) == 0 {
			return true
		}
		for _, field := range []string{"resources", "bases", "components"} {
			list := yamledit.Resolve(yamledit.Find(documents[0], field))
			if list == nil {
				continue
			}
			for _, item := range list.Content {
				r.named(dir, yamledit.Text(yamledit.Resolve(item)))
			}
		}
		return true
	}
	return false
}

// named adds a file that a kustomization.yaml names, or a folder with a kustomization.yaml.
func (r *reach) named(dir, name string) {
	at := path.Join(dir, name)
	if name == "" || path.IsAbs(name) || strings.Contains(name, "://") || !fs.ValidPath(at) || r.dirs[at] {
		return
	}
	info, err := fs.Stat(r.files, at)
	switch {
	case err != nil:
	case info.IsDir():
		r.kustomization(at)
	default:
		r.read[at] = true
	}
}
