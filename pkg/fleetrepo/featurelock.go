package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FeatureCharts returns the charts of the repo's features, by name and without digests. It leaves out features whose
// version is a range, and features that consist of manifests, because they have no chart to lock.
func (r *Repo) FeatureCharts() ([]v1alpha1.LockedFeature, error) {
	names, err := r.folders(layout.FeaturesDir)
	if err != nil {
		return nil, err
	}
	out := []v1alpha1.LockedFeature{}
	for _, name := range names {
		source, release := FeatureChartFiles(name)
		if !r.exists(source) || !r.exists(release) {
			continue
		}
		src, err := r.read(source)
		if err != nil {
			return nil, err
		}
		rel, err := r.read(release)
		if err != nil {
			return nil, err
		}
		if f, ok := ChartOfFeature(name, src, rel); ok {
			out = append(out, f)
		}
	}
	return out, nil
}

// FeatureChartFiles are the files that say which chart a feature is, and where it comes from.
func FeatureChartFiles(name string) (source, release string) {
	dir := path.Join(layout.FeaturesDir, name, "namespaced")
	return path.Join(dir, "source.yaml"), path.Join(dir, "release.yaml")
}

// ChartOfFeature returns the chart of a feature from the content of its files source and release. ok is false if they
// do not name exactly one version of a chart.
func ChartOfFeature(name string, source, release []byte) (_ v1alpha1.LockedFeature, ok bool) {
	f := v1alpha1.LockedFeature{Name: name, Chart: strings.TrimSuffix(fieldOf(source, yamledit.Path{"spec", "url"}), "/")}
	switch fieldOf(source, yamledit.Path{"kind"}) {
	case "OCIRepository":
		f.Version = fieldOf(source, yamledit.Path{"spec", "ref", "tag"})
	case "HelmRepository":
		f.Chart += "/" + fieldOf(release, yamledit.Path{"spec", "chart", "spec", "chart"})
		f.Version = fieldOf(release, yamledit.Path{"spec", "chart", "spec", "version"})
	}
	one := f.Version != "" && !strings.ContainsAny(f.Version, "<>=~^*|, ") && !strings.Contains(f.Version, ".x")
	return f, one && !strings.HasSuffix(f.Chart, "/") && !strings.Contains(f.Chart+f.Version, "${")
}

// lockedFeatures returns the entries of old for the present charts of features, without those of removed features.
func (r *Repo) lockedFeatures(old *v1alpha1.Lock) ([]v1alpha1.LockedFeature, error) {
	charts, err := r.FeatureCharts()
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.LockedFeature
	for _, wanted := range charts {
		if have := old.FindFeature(wanted); have != nil {
			out = append(out, *have)
		}
	}
	return out, nil
}

// unlockFeature removes the chart of a feature from fleet.lock.
func (r *Repo) unlockFeature(e *Edit, name string) error {
	lock, err := r.readLock()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(lock.Features), func(f v1alpha1.LockedFeature) bool { return f.Name == name })
	if len(kept) == len(lock.Features) {
		return nil
	}
	lock.Features = kept
	return r.writeLock(e, lock)
}

// ChartDigest finds the digest of the archive of a feature's chart. Errors: the chart cannot be read here and now.
type ChartDigest func(v1alpha1.LockedFeature) (sha256 string, err error)

// lockFeature adds the chart of a feature to fleet.lock, in place of the feature's other versions. files make the chart. The digest is that
// of another feature with this chart, or the one that digest finds. If it finds none, a note says which command adds it. A repo without a
// fleet.lock has nothing locked yet, and gets none.
func (r *Repo) lockFeature(e *Edit, name string, files []manifest.File, digest ChartDigest) error {
	if !r.exists(v1alpha1.LockFileName) {
		return nil
	}
	lock, err := r.readLock()
	if err != nil {
		return err
	}
	at := func(file string) []byte {
		return files[slices.IndexFunc(files, func(f manifest.File) bool { return f.Path == file })].Content
	}
	source, release := FeatureChartFiles(name)
	f, ok := ChartOfFeature(name, at(source), at(release))
	if !ok || lock.FindFeature(f) != nil {
		return nil
	}
	if same := lock.FindChart(f.Chart, f.Version); same != nil {
		f.SHA256 = same.SHA256
	} else if f.SHA256, err = digest(f); err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("`fleetctl lock` writes the digest of its chart to %s; now it could not be read: %v.",
			v1alpha1.LockFileName, err))
		return nil
	}
	lock.Features = slices.DeleteFunc(slices.Clone(lock.Features), func(o v1alpha1.LockedFeature) bool { return o.Name == name })
	lock.Features = append(lock.Features, f)
	return r.writeLock(e, lock)
}
