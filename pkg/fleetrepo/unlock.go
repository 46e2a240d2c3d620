package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// installs lists what a management cluster installs beside Flux, as far as fleet.yaml and the defaults of this fleetctl say it. A component
// whose version is open has none.
func installs(m v1alpha1.ManagementCluster) []v1alpha1.LockedComponent {
	m.Providers = slices.Clone(m.Providers)
	one := &v1alpha1.Fleet{Spec: v1alpha1.FleetSpec{ManagementClusters: []v1alpha1.ManagementCluster{m}}}
	v1alpha1.SetDefaults(one, v1alpha1.Defaults{CAPIVersion: version.Library("cluster-api")})
	out := []v1alpha1.LockedComponent{{
		Name: string(v1alpha1.ComponentCertManager), Type: v1alpha1.ComponentCertManager, Version: m.CertManager.Version, URL: m.CertManager.URL,
	}}
	for _, p := range one.Spec.ManagementClusters[0].Providers {
		out = append(out, lockedProvider(p))
	}
	return out
}

// lockedProvider is the entry of a provider in the lock, without its digest.
func lockedProvider(p v1alpha1.Provider) v1alpha1.LockedComponent {
	return v1alpha1.LockedComponent{Name: p.Name, Type: v1alpha1.ComponentType(TypeOf(p)), Version: p.Version, URL: p.URL}
}

// unlock removes from a lock the components among gone that no management cluster of the repo installs any more. A component of gone
// without a version stands for each of its versions. The lock does not say whose an image is, so images stay, and a note says how they go.
func (r *Repo) unlock(e *Edit, lock *v1alpha1.Lock, gone []v1alpha1.LockedComponent) {
	var left []v1alpha1.LockedComponent
	for i := range r.Fleet.Spec.ManagementClusters {
		left = append(left, installs(r.Fleet.Spec.ManagementClusters[i])...)
	}
	among := func(c v1alpha1.LockedComponent, all []v1alpha1.LockedComponent) bool {
		return slices.ContainsFunc(all, func(o v1alpha1.LockedComponent) bool {
			return o.Type == c.Type && o.Name == c.Name && o.URL == c.URL && (o.Version == "" || o.Version == c.Version)
		})
	}
	var dropped []string
	lock.Components = slices.DeleteFunc(lock.Components, func(c v1alpha1.LockedComponent) bool {
		drop := among(c, gone) && !among(c, left)
		if drop {
			dropped = append(dropped, c.String())
		}
		return drop
	})
	if len(dropped) > 0 && len(lock.Images) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("%s does not say whose its images are, so it still has those of %s: `fleetctl lock` takes them "+
			"out. Until then `fleetctl lock --check` fails.", v1alpha1.LockFileName, strings.Join(dropped, ", ")))
	}
}
