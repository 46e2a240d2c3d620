package fleetrepo

import (
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// VersionsToOffer are the Kubernetes versions that the fleet knows: those of its clusters, pools and management clusters, and those in the
// examples of its charts. Versions in also are offered, too. If cluster names a cluster (NAME or ENVIRONMENT/NAME), versions before its own
// are left out. Files that cannot be read give no versions. The oldest version comes first.
func (r *Repo) VersionsToOffer(cluster string, also ...string) []string {
	versions := slices.Clone(also)
	from := ""
	clusters, _, err := r.Clusters()
	if err != nil {
		return VersionsInOrder(also)
	}
	for _, c := range clusters {
		versions = append(versions, c.KubernetesVersion)
		for _, p := range c.Pools {
			versions = append(versions, p.KubernetesVersion)
		}
		if cluster != "" && (c.Name == cluster || c.Environment+"/"+c.Name == cluster) {
			from = c.KubernetesVersion
		}
	}
	for _, m := range r.Fleet.Spec.ManagementClusters {
		versions = append(versions, m.KubernetesVersion)
	}
	versions = append(versions, r.exampleVersions()...)
	return inOrder(versions, from)
}

// ProviderVersionsToOffer are the versions of a provider that fleet.yaml and fleet.lock name, for any management cluster, and those in
// also. A lock that cannot be read gives no versions. The oldest version comes first.
func (r *Repo) ProviderVersionsToOffer(name string, of v1alpha1.ProviderType, also ...string) []string {
	versions := slices.Clone(also)
	for _, p := range r.Providers() {
		if p.Name == name && p.Type == of {
			versions = append(versions, p.Version)
		}
	}
	if lock, err := r.readLock(); err == nil {
		for _, c := range lock.Components {
			if c.Name == name && c.Type == v1alpha1.ComponentType(of) {
				versions = append(versions, c.Version)
			}
		}
	}
	return VersionsInOrder(versions)
}

// VersionsInOrder sorts versions, the oldest first. It leaves out repetitions, and texts that are no versions.
func VersionsInOrder(versions []string) []string { return inOrder(versions, "") }

// inOrder sorts versions. It leaves out texts that are no versions, and, if from is a version, all versions before from.
func inOrder(versions []string, from string) []string {
	least, _ := version.ParseSemantic(from)
	var parsed []*version.Version
	for _, text := range sortedSet(versions) {
		if v, err := version.ParseSemantic(text); err == nil && (least == nil || v.AtLeast(least)) {
			parsed = append(parsed, v)
		}
	}
	slices.SortFunc(parsed, func(a, b *version.Version) int {
		switch {
		case a.LessThan(b):
			return -1
		case b.LessThan(a):
			return 1
		}
		return 0
	})
	names := make([]string, 0, len(parsed))
	for _, v := range parsed {
		names = append(names, "v"+v.String())
	}
	return names
}

// exampleVersions are the versions in the examples of the charts for the fleet's flavours.
func (r *Repo) exampleVersions() []string {
	flavours := r.FlavoursToOffer()
	versions := make([]string, len(flavours))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, flavour := range flavours {
		group.Go(func() error {
			if ch, err := r.chart(flavour); err == nil {
				versions[i], _ = ch.example()["kubernetesVersion"].(string)
			}
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return versions
}
