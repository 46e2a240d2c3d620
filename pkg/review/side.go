package review

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
)

// fleetFiles are the files of one side of a comparison. fleet is nil if they have no fleet.yaml.
type fleetFiles struct {
	files fs.FS
	fleet *v1alpha1.Fleet
}

// side returns the fleet in a commit.
func (s *snapshot) side() (*fleetFiles, error) {
	f := &fleetFiles{files: s.files()}
	content, err := fs.ReadFile(f.files, v1alpha1.FileName)
	if err != nil {
		return f, nil //nolint:nilerr // the fleet begins after this commit
	}
	if f.fleet, err = v1alpha1.Decode(v1alpha1.FileName, content); err != nil {
		return nil, diag.Wrap("read "+v1alpha1.FileName+" of commit "+s.Commit[:12], err, "compare with a revision whose fleet.yaml is right")
	}
	return f, nil
}

// folderSide returns the fleet in a folder, without the files and folders that Git ignores.
func folderSide(dir string, ignored []string) (*fleetFiles, error) {
	files, err := render.Dir(dir, ignored...)
	if err != nil {
		return nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(dir, v1alpha1.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &fleetFiles{files: files}, nil
	}
	return &fleetFiles{files, fleet}, err
}

// completeWith gives a fleet to sides without a fleet.yaml, so that they can be compared. It takes the other side's fleet if that repo
// existed before its fleet.yaml. Otherwise it assumes a fleet from the side's Flux objects. A fleet that begins between the two has had no
// objects before. dir is the name of the repo's folder.
func (f *fleetFiles) completeWith(other *fleetFiles, dir string) error {
	switch {
	case f.fleet != nil && other.fleet != nil:
		return nil
	case f.fleet == nil && other.fleet == nil:
		var errs [2]error
		f.fleet, errs[0] = roots.Assume(f.files, dir)
		other.fleet, errs[1] = roots.Assume(other.files, dir)
		if errs[0] != nil && errs[1] != nil {
			return errs[1]
		}
		return nil
	}
	known, missing := f, other
	if known.fleet == nil {
		known, missing = other, f
	}
	if known.fleet.HasPaths() {
		missing.fleet = known.fleet
	}
	return nil
}

// render renders one side. A side without a fleet has no objects.
func (f *fleetFiles) render(ctx context.Context, cacheDir string) (*render.Result, error) {
	if f.fleet == nil {
		return &render.Result{}, nil
	}
	return render.New(f.files, roots.AddTo(f.fleet, f.files),
		render.Options{CacheDir: cacheDir, Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx)}).All(ctx)
}
