package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Lock is the edit that makes fleet.lock list exactly the components and images that were read, and the charts of the
// repo. Notes tell a reviewer about changed digests.
func (r *Repo) Lock(read *v1alpha1.Lock, notes ...string) (*Edit, error) {
	e := &Edit{Summary: "Lock what the fleet installs", Notes: slices.Clone(notes)}
	old, err := r.readLock()
	if err != nil {
		return nil, err
	}
	lock := &v1alpha1.Lock{Components: slices.Clone(read.Components), Images: read.Images, Features: read.Features}
	for i, c := range lock.Components {
		have := old.Find(c)
		if have == nil {
			continue
		}
		if have.SHA256 == c.SHA256 {
			lock.Components[i].Bundle = have.Bundle // the same content, wherever it comes from
		} else {
			e.Notes = append(e.Notes, fmt.Sprintf("The digest of %s differs from the locked one: find out why before you commit it.", c))
		}
	}
	if lock.Charts, err = r.lockedCharts(old, nil); err != nil {
		return nil, err
	}
	return e, r.writeLock(e, lock)
}

// Relock returns the edit that adds missing entries to fleet.lock: for the components and images that were read, and
// for the charts of the repo and of files, which are about to be written. It drops versions that fleet.yaml no longer
// names, and leaves everything else as it is.
func (r *Repo) Relock(read *v1alpha1.Lock, files []manifest.File) (*Edit, error) {
	e := &Edit{Summary: "Lock what the fleet installs"}
	lock, err := r.relocked(read, files)
	if err != nil {
		return nil, err
	}
	return e, r.writeLock(e, lock)
}

// relocked is the lock that Relock writes.
func (r *Repo) relocked(read *v1alpha1.Lock, files []manifest.File) (*v1alpha1.Lock, error) {
	old, err := r.readLock()
	if err != nil {
		return nil, err
	}
	lock := &v1alpha1.Lock{}
	for _, c := range old.Components {
		if slices.ContainsFunc(read.Components, func(other v1alpha1.LockedComponent) bool {
			return other.Type == c.Type &&
				other.Name == c.Name
		}) && !r.names(c) {
			continue
		}
		lock.Components = append(lock.Components, c)
	}
	for _, c := range read.Components {
		if lock.Find(c) == nil {
			if have := old.Find(c); have != nil {
				c = *have
			}
			lock.Add(c)
		}
	}
	lock.Images = r.relockImages(old.Images, read.Images)
	if lock.Features, err = r.lockedFeatures(old); err != nil {
		return nil, err
	}
	lock.Charts, err = r.lockedCharts(old, files)
	return lock, err
}

// relockImages merges the images that were read into the images of a lock. A digest from a registry replaces one from a bundle. Other
// tags of an image that was read are dropped, unless another management cluster may run them.
func (r *Repo) relockImages(old, read []v1alpha1.LockedImage) []v1alpha1.LockedImage {
	now := &v1alpha1.Lock{Images: read}
	var out []v1alpha1.LockedImage
	for _, image := range old {
		switch found := now.FindImage(image.Name); {
		case found != nil && image.Bundle:
			out = append(out, *found)
		case found != nil || len(r.Fleet.Spec.ManagementClusters) > 1 || !replaced(image, read):
			out = append(out, image)
		}
	}
	was := &v1alpha1.Lock{Images: old}
	for _, image := range read {
		if was.FindImage(image.Name) == nil {
			out = append(out, image)
		}
	}
	return out
}

// replaced tells whether images has another tag of the same image.
func replaced(image v1alpha1.LockedImage, images []v1alpha1.LockedImage) bool {
	return slices.ContainsFunc(images, func(other v1alpha1.LockedImage) bool { return repository(other.Name) == repository(image.Name) })
}

// repository is the name of an image without its tag.
func repository(image string) string {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i]
	}
	return image
}

// NewLock is the content that Relock writes to a new fleet.lock.
func (r *Repo) NewLock(read *v1alpha1.Lock, files []manifest.File) (manifest.File, error) {
	charts, err := r.lockedCharts(&v1alpha1.Lock{}, files)
	if err != nil {
		return manifest.File{}, err
	}
	content, err := v1alpha1.MarshalLock(&v1alpha1.Lock{
		Components: read.Components, Images: read.Images, Charts: charts, Features: read.Features,
	})
	return manifest.File{Path: v1alpha1.LockFileName, Content: content}, err
}

// names tells whether fleet.yaml, with its defaults, names this version of a provider for any management cluster. For a
// component that is no provider, only the version that was read counts.
func (r *Repo) names(c v1alpha1.LockedComponent) bool {
	for i := range r.Fleet.Spec.ManagementClusters {
		for _, p := range r.Fleet.Spec.ManagementClusters[i].Providers {
			if string(p.Type) == string(c.Type) && p.Name == c.Name && p.Version == c.Version && p.URL == c.URL {
				return true
			}
		}
	}
	return c.Type == v1alpha1.ComponentCertManager && len(r.Fleet.Spec.ManagementClusters) > 1
}

// readLock reads the lock of the repo; it is empty if there is no file.
func (r *Repo) readLock() (*v1alpha1.Lock, error) {
	lock, err := v1alpha1.LoadLock(filepath.Join(r.Dir, v1alpha1.LockFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return &v1alpha1.Lock{}, nil
	}
	return lock, err
}

func (r *Repo) writeLock(e *Edit, lock *v1alpha1.Lock) error {
	content, err := v1alpha1.MarshalLock(lock)
	if err != nil {
		return err
	}
	r.writeText(&e.Changes, manifest.File{Path: v1alpha1.LockFileName, Content: content})
	return nil
}

// lockedCharts returns the entries of the repo's charts. A locked chart keeps its entry, even if the team has changed the chart. A new
// chart is entered with its present content, or with the content that the edit is about to write.
func (r *Repo) lockedCharts(old *v1alpha1.Lock, files []manifest.File) ([]v1alpha1.LockedChart, error) {
	names, err := r.folders(layout.ChartsDir)
	if err != nil {
		return nil, err
	}
	coming := map[string][]manifest.File{}
	for _, f := range files {
		if rest, ok := strings.CutPrefix(f.Path, layout.ChartsDir+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			coming[name] = append(coming[name], f)
			names = append(names, name)
		}
	}
	names = sortedSet(names)
	var out []v1alpha1.LockedChart
	for _, name := range names {
		if i := slices.IndexFunc(old.Charts, func(c v1alpha1.LockedChart) bool { return c.Name == name }); i >= 0 {
			out = append(out, old.Charts[i])
			continue
		}
		files, err := r.chartFiles(name)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			files = coming[name]
		}
		if len(files) == 0 {
			continue
		}
		chart := v1alpha1.LockedChart{Name: name, SHA256: scaffold.Digest(files)}
		if own, err := scaffold.ChartFiles(name); err == nil && scaffold.Digest(own) == chart.SHA256 {
			chart.Fleetctl = version.Get().Version
		}
		out = append(out, chart)
	}
	return out, nil
}

// chartFiles returns the files of a chart of the repo; none if the folder is not a chart.
func (r *Repo) chartFiles(name string) ([]manifest.File, error) {
	dir := path.Join(layout.ChartsDir, name)
	if !r.exists(path.Join(dir, "Chart.yaml")) {
		return nil, nil
	}
	return r.filesIn(dir)
}

// filesIn returns all files below a folder; none if the folder does not exist.
func (r *Repo) filesIn(dir string) ([]manifest.File, error) {
	if !r.exists(dir) {
		return nil, nil
	}
	var files []manifest.File
	err := within.WalkDir(r.Dir, dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := r.read(file)
		files = append(files, manifest.File{Path: file, Content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart %s: %w", dir, err)
	}
	return files, nil
}
