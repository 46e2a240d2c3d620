package lifecycle

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// wantedQuestion asks what Flux would apply to a management cluster.
type wantedQuestion struct {
	// Dir has the files of the fleet repo; Fleet is its fleet.yaml as init takes it.
	Dir, ManagementCluster string
	Fleet                  *v1alpha1.Fleet
}

// wantedObject is one of the answer.
type wantedObject struct{ APIVersion, Kind, Namespace, Name string }

// WantedTask renders what a management cluster's Flux applies to it.
var WantedTask = confine.New("wanted", wantedTask)

func wantedTask(ctx context.Context, q wantedQuestion) ([]wantedObject, error) {
	files, err := render.Dir(q.Dir)
	if err != nil {
		return nil, err
	}
	result, err := render.New(files, q.Fleet, render.Options{Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).All(ctx)
	if err != nil {
		return nil, err
	}
	var out []wantedObject
	for _, o := range result.Objects {
		if o.ManagementCluster == q.ManagementCluster && len(o.Targets) == 0 && !o.Suspended {
			out = append(out, wantedObject{o.APIVersion, o.Kind, o.Namespace, o.Name})
		}
	}
	return out, nil
}

// wantedObjects are those of the commit that Flux is to apply, or before there is one those of the folder.
func (s *session) wantedObjects(ctx context.Context, have repoView) ([]wantedObject, error) {
	dir := s.opts.Dir
	if have.repo != nil && have.revision != "" {
		checkout, remove, err := atomicfile.TempFolder("", "wanted")
		if err != nil {
			return nil, err
		}
		defer func() { _ = remove() }() // temporary files
		if err := writeCommit(have.repo, have.revision, checkout); err != nil {
			return nil, fmt.Errorf("read commit %s: %w", have.revision, err)
		}
		dir = checkout
	}
	return WantedTask.Run(ctx, wantedQuestion{Dir: dir, ManagementCluster: s.mgmt.Name, Fleet: s.fleet}, confine.Needs{Read: []string{dir}})
}

// writeCommit writes the regular files of a commit below dir, and never beside it. Nothing larger than what is rendered is needed.
func writeCommit(repo *gitrepo.Repo, commit, dir string) error {
	files, err := repo.Files(commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only gone through
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Size() > int64(render.Limits.Bytes) {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		return root.WriteFile(name, content, 0o600)
	})
}
