package components

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// Bundled are the providers of the bundle, each in its newest version there, without digests; none without a bundle.
func (r *Reader) Bundled() []v1alpha1.LockedComponent {
	if r.folder == "" {
		return nil
	}
	entries, _ := os.ReadDir(r.providers()) // a bundle without providers has none
	var out []v1alpha1.LockedComponent
	for _, e := range entries {
		c, ok := fromLabel(e.Name())
		if !ok {
			continue
		}
		versions, _ := os.ReadDir(filepath.Join(r.providers(), e.Name()))
		for _, v := range versions {
			if problem, _ := v1alpha1.VersionProblem(v.Name()); problem == "" && (c.Version == "" || releases.IsOlder(c.Version, v.Name())) {
				c.Version = v.Name()
			}
		}
		if c.Version != "" {
			out = append(out, c)
		}
	}
	return out
}

// fromLabel is the provider of a folder of the bundle, which is called as clusterctl calls the provider: infrastructure-aws.
func fromLabel(label string) (v1alpha1.LockedComponent, bool) {
	if label == v1alpha1.CoreProviderName {
		return v1alpha1.LockedComponent{Name: label, Type: v1alpha1.ComponentType(v1alpha1.ProviderCore)}, true
	}
	types := []v1alpha1.ProviderType{
		v1alpha1.ProviderBootstrap, v1alpha1.ProviderControlPlane, v1alpha1.ProviderInfrastructure, v1alpha1.ProviderIPAM,
		v1alpha1.ProviderAddon, v1alpha1.ProviderRuntimeExtension,
	}
	i := slices.IndexFunc(types, func(t v1alpha1.ProviderType) bool { return strings.HasPrefix(label, string(t)+"-") })
	if i < 0 {
		return v1alpha1.LockedComponent{}, false
	}
	return v1alpha1.LockedComponent{Name: strings.TrimPrefix(label, string(types[i])+"-"), Type: v1alpha1.ComponentType(types[i])}, true
}
