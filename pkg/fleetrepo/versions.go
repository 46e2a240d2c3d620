package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// Version is a version to write into fleet.yaml.
type Version struct {
	// Name and Type of a provider; or Type flux or cert-manager, which need no name.
	Name string
	Type v1alpha1.ComponentType
	To   string
}

// SetVersions writes versions of a management cluster's components ("" stands for the only management cluster) into
// fleet.yaml. Then it calls read with the changed fleet, and writes the result into fleet.lock. Flux's version is that
// of all management clusters. If all versions are set already, the edit changes nothing.
func (r *Repo) SetVersions(
	cluster string,
	versions []Version,
	read func(*v1alpha1.Fleet) (_ *v1alpha1.Lock, notes []string, _ error),
) (*Edit, error) {
	m, err := r.managementCluster(cluster)
	if err != nil {
		return nil, err
	}
	src, err := r.read(v1alpha1.FileName)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Upgrade " + m.Name, AsWanted: "fleet.yaml has the newest versions that fit"}
	if len(versions) == 0 {
		return e, nil
	}
	var what []string
	for _, v := range versions {
		if src, err = setVersion(src, m, v); err != nil {
			return nil, diag.Wrap("change "+v1alpha1.FileName, err, "")
		}
		name := v.Name
		if name == "" {
			name = string(v.Type)
		}
		if text := fmt.Sprintf("%s %s", name, v.To); !slices.Contains(what, text) { // two parts of Cluster API are called kubeadm
			what = append(what, text)
		}
	}
	fleet, err := v1alpha1.Decode(v1alpha1.FileName, src)
	if err != nil {
		return nil, err
	}
	locked, notes, err := read(fleet)
	if err != nil {
		return nil, err
	}
	e.Summary = fmt.Sprintf("Upgrade %s to %s", m.Name, strings.Join(what, ", "))
	e.Changes.Write(manifest.File{Path: v1alpha1.FileName, Content: src})
	known, err := r.readLock()
	if err != nil {
		return nil, err
	}
	// Whether the locked entries are still the same is a question for `fleetctl lock` and init.
	locked.Images = slices.DeleteFunc(locked.Images, func(image v1alpha1.LockedImage) bool { return known.FindImage(image.Name) != nil })
	lock, err := New(r.Dir, fleet).Relock(locked, nil)
	if err != nil {
		return nil, err
	}
	e.Changes.Write(lock.Changes.Files()...)
	e.Notes = append(e.Notes, notes...)
	e.Notes = append(e.Notes,
		"Read the releases' notes before it is merged. `fleetctl upgrade apply` brings the management cluster to these versions.")
	return e, nil
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
