package scaffold

import (
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FolderFiles returns the Flux Kustomizations that apply the folders of an environment and of its clusters, and the folders that all
// clusters share. Each cluster that runs Flux also needs its own folders: see ClusterFolders.
func FolderFiles(at layout.Layout, environment string) ([]manifest.File, error) {
	content, err := execute("folders.yaml", struct{ Environment, Path, Common string }{
		environment, at.Environment(environment),
		at.Cluster(environment, layout.CommonDir),
	})
	if err != nil {
		return nil, err
	}
	kept, err := keepFolders(at.Cluster(environment, layout.CommonDir), "every cluster of "+environment)
	return append([]manifest.File{{Path: at.FoldersFile(environment), Content: content}}, kept...), err
}

// ClusterFolders returns files that keep the folders for a single cluster's apps in Git.
func ClusterFolders(at layout.Layout, environment, name string) ([]manifest.File, error) {
	return keepFolders(at.Cluster(environment, name), "the cluster "+name)
}

func keepFolders(dir, whose string) ([]manifest.File, error) {
	content, err := execute("keep", whose)
	if err != nil {
		return nil, err
	}
	files := make([]manifest.File, 0, len(layout.Scopes()))
	for _, scope := range layout.Scopes() {
		files = append(files, manifest.File{Path: path.Join(dir, scope, layout.KeepFile), Content: content})
	}
	return files, nil
}

// ClusterFolder returns the files beside those of ClusterFiles: a kustomization.yaml, and the ClusterFolders of a cluster that runs Flux.
// The kustomization.yaml lists the files for the management cluster, so that it does not apply the cluster's own manifests to itself.
func ClusterFolder(opts ClusterOptions) ([]manifest.File, error) {
	flux := opts.Flux == FluxOwn || opts.Flux == FluxRemote
	content, err := execute("cluster-kustomization.yaml", struct {
		Name string
		Flux bool
	}{opts.Name, flux})
	if err != nil {
		return nil, err
	}
	files := []manifest.File{{Path: path.Join(opts.Layout.Cluster(opts.Environment, opts.Name), "kustomization.yaml"), Content: content}}
	if !flux {
		return files, nil
	}
	folders, err := ClusterFolders(opts.Layout, opts.Environment, opts.Name)
	return append(files, folders...), err
}

// EnvironmentFolder returns all files of an environment: EnvironmentFiles and FolderFiles.
func EnvironmentFolder(at layout.Layout, env Environment) ([]manifest.File, error) {
	files, err := EnvironmentFiles(at, env)
	if err != nil {
		return nil, err
	}
	folders, err := FolderFiles(at, env.Name)
	return append(files, folders...), err
}

// environmentOfFolders returns the shared folder of the environment that a file of FolderFiles belongs to; "" for another file.
func environmentOfFolders(name string) string {
	for _, suffix := range []string{"/apps/" + layout.FoldersName, "/non-namespaced/" + layout.KeepFile, "/namespaced/" + layout.KeepFile} {
		if dir, ok := strings.CutSuffix(name, suffix); ok && path.Base(dir) == layout.CommonDir {
			return dir
		}
	}
	return ""
}
