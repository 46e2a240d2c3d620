package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Version is a version to write into fleet.yaml.
type Version struct {
	// Name and Type of a provider; or Type flux or cert-manager, which need no name.
	Name string
	Type v1alpha1.ComponentType
	To   string
}

// SetVersions writes versions of a management cluster's components ("" stands for the only management cluster) into
// fleet.yaml, and those of features' charts into the features' files. It calls read with the changed fleet and the
// present lock, which is empty if there is none, and writes the result and the digests of the charts into fleet.lock.
// read has to return all that the fleet installs. Flux's version is that of all management clusters. If all versions
// are set already, the edit changes nothing.
func (r *Repo) SetVersions(
	cluster string,
	versions []Version,
	charts []v1alpha1.LockedFeature,
	read func(*v1alpha1.Fleet, *v1alpha1.Lock) (_ *v1alpha1.Lock, notes []string, _ error),
) (*Edit, error) {
	m, err := r.managementCluster(cluster)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Upgrade " + m.Name, AsWanted: "the fleet repo has the newest versions that fit"}
	if len(versions) == 0 && len(charts) == 0 {
		return e, nil
	}
	fleet, what, err := r.setVersions(e, m, versions)
	if err != nil {
		return nil, err
	}
	moved, named := r.moveFeatureCharts(e, charts)
	if what = append(what, named...); len(what) == 0 {
		return e, nil
	}
	e.Summary = "Upgrade to " + strings.Join(what, ", ")
	if len(versions) > 0 {
		e.Summary = fmt.Sprintf("Upgrade %s to %s", m.Name, strings.Join(what, ", "))
	}
	lock, err := r.readLock()
	if err != nil {
		return nil, err
	}
	if len(versions) > 0 || !r.exists(v1alpha1.LockFileName) {
		all, notes, err := read(fleet, lock)
		if err != nil {
			return nil, err
		}
		// What other versions needed goes, also where another management cluster had it: `fleetctl lock --check` knows no more than all.
		lock.Components, lock.Images = all.Components, all.Images
		if lock.Features, err = r.lockedFeatures(&v1alpha1.Lock{Features: slices.Concat(lock.Features, all.Features)}); err != nil {
			return nil, err
		}
		if lock.Charts, err = r.lockedCharts(lock, nil); err != nil {
			return nil, err
		}
		e.Notes = append(e.Notes, notes...)
	}
	for _, chart := range moved {
		lock.Features = slices.DeleteFunc(lock.Features, func(f v1alpha1.LockedFeature) bool { return f.Name == chart.Name })
	}
	lock.Features = append(lock.Features, moved...)
	if err := r.writeLock(e, lock); err != nil {
		return nil, err
	}
	if len(versions) > 0 {
		e.Notes = append(e.Notes,
			"Read the releases' notes before it is merged. `fleetctl upgrade apply` brings the management cluster to these versions.")
	}
	if len(moved) > 0 {
		e.Notes = append(e.Notes, "Flux brings the charts to the clusters that have these features as soon as Git has the change.")
	}
	return e, nil
}

// setVersions writes versions into fleet.yaml, and returns the changed fleet and what a summary says of them.
func (r *Repo) setVersions(e *Edit, m *v1alpha1.ManagementCluster, versions []Version) (_ *v1alpha1.Fleet, what []string, _ error) {
	if len(versions) == 0 {
		return r.Fleet, nil, nil
	}
	src, err := r.read(v1alpha1.FileName)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range versions {
		if src, err = setVersion(src, m, v); err != nil {
			return nil, nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "write the version there in an editor: "+v.To)
		}
		name := v.Name
		if name == "" {
			name = string(v.Type)
		}
		if text := fmt.Sprintf("%s %s", name, v.To); !slices.Contains(what, text) { // two parts of Cluster API are called kubeadm
			what = append(what, text)
		}
	}
	e.Changes.Write(manifest.File{Path: v1alpha1.FileName, Content: src})
	fleet, err := v1alpha1.Decode(v1alpha1.FileName, src)
	return fleet, what, err
}

// moveFeatureCharts changes features to other versions of their charts. A feature whose files are not as fleetctl writes them stays as it
// is, with a note.
func (r *Repo) moveFeatureCharts(e *Edit, charts []v1alpha1.LockedFeature) (moved []v1alpha1.LockedFeature, what []string) {
	for _, chart := range charts {
		c := scaffold.FeatureChart{URL: chart.Chart, Version: strings.ReplaceAll(chart.Version, "_", "+")}
		files, err := scaffold.FeatureChartFiles(chart.Name, c)
		var edit *Edit
		if err == nil {
			edit, err = r.moveFeatureChart(chart.Name, c, files)
		}
		if err != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("The chart of feature %s stays as it is, though there is %s: %v. Write the version into %s "+
				"in an editor.", chart.Name, chart.Version, err, path.Join(layout.FeaturesDir, chart.Name)))
			continue
		}
		e.Changes.Write(edit.Changes.Files()...)
		moved, what = append(moved, chart), append(what, fmt.Sprintf("feature %s %s", chart.Name, chart.Version))
	}
	return moved, what
}

func setVersion(src []byte, m *v1alpha1.ManagementCluster, v Version) ([]byte, error) {
	switch v.Type {
	case v1alpha1.ComponentFlux:
		return v1alpha1.Set(src, "spec.flux.version", v.To)
	case v1alpha1.ComponentCertManager:
		return v1alpha1.SetCertManagerVersion(src, m.Name, v.To)
	}
	return v1alpha1.SetProviderVersion(src, m.Name, v1alpha1.ProviderType(v.Type), v.Name, v.To)
}
