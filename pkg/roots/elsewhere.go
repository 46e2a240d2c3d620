package roots

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// mostFolders is how many folders with a kustomization.yaml are compared at most.
const mostFolders = 500

// appliedElsewhere is a folder that the Flux of another repo may apply: the first one with a kustomization.yaml that no other
// kustomization.yaml names. It is "" for a repo without any object of Flux, and "." for one without a kustomization.yaml.
func appliedElsewhere(files fs.FS) string {
	var folders []string
	flux := false
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be listed says nothing
		case entry.IsDir():
			if name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			if len(folders) < mostFolders && isKustomized(files, name) {
				folders = append(folders, name)
			}
			return nil
		case flux || !entry.Type().IsRegular() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml":
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > int64(yamledit.ReadLimits.Bytes) {
			return nil //nolint:nilerr // as above
		}
		content, err := fs.ReadFile(files, name)
		flux = err == nil && bytes.Contains(content, []byte(".toolkit.fluxcd.io/")) && bytes.Contains(content, []byte("apiVersion:"))
		return nil
	})
	if !flux {
		return ""
	}
	named := map[string]bool{}
	for _, folder := range folders {
		for dir := range newReach(files, folder).dirs {
			named[dir] = named[dir] || dir != folder
		}
	}
	for _, folder := range folders {
		if !named[folder] {
			return folder
		}
	}
	return "."
}
