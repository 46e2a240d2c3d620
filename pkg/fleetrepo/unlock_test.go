package fleetrepo

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// A provider or a management cluster that is removed takes from fleet.lock what no other management cluster installs, version by version.
func TestRemovedComponentsLeaveTheLock(t *testing.T) {
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  environments: [{name: dev}]
  managementClusters:
  - name: one
    cloud: one
    certManager: {version: v1.20.0}
    providers:
    - {name: aws, version: v2.12.0}
    - {name: docker, version: v1.14.2}
    - {name: vsphere, version: v1.15.0, url: "https://example.com/infrastructure-components.yaml"}
    - {name: cluster-api, type: core, version: v1.13.0}
  - name: two
    cloud: two
    certManager: {version: v1.21.0}
    providers:
    - {name: aws, version: v2.13.0}
    - {name: docker, version: v1.14.2}
    - {name: vsphere, version: v1.15.0}
    - {name: gcp}
    - {name: cluster-api, type: core, version: v1.13.1}
`
	component := func(name string, of v1alpha1.ComponentType, version, url string) v1alpha1.LockedComponent {
		return v1alpha1.LockedComponent{Name: name, Type: of, Version: version, URL: url, SHA256: strings.Repeat("0", 64)}
	}
	infrastructure := v1alpha1.ComponentType(v1alpha1.ProviderInfrastructure)
	all := []v1alpha1.LockedComponent{
		component("aws", infrastructure, "v2.12.0", ""), component("aws", infrastructure, "v2.13.0", ""),
		component("docker", infrastructure, "v1.14.2", ""), component("gcp", infrastructure, "v1.0.0", ""),
		component("vsphere", infrastructure, "v1.15.0", ""),
		component("vsphere", infrastructure, "v1.15.0", "https://example.com/infrastructure-components.yaml"),
		component("cluster-api", "core", "v1.13.0", ""), component("cluster-api", "core", "v1.13.1", ""),
		component("cert-manager", v1alpha1.ComponentCertManager, "v1.20.0", ""),
		component("cert-manager", v1alpha1.ComponentCertManager, "v1.21.0", ""),
		component("flux", v1alpha1.ComponentFlux, "v2.9.5", ""),
	}
	provider := func(management, name string) func(*Repo) (*Edit, error) {
		return func(r *Repo) (*Edit, error) { return r.RemoveProvider(management, v1alpha1.Provider{Name: name}) }
	}
	for name, tc := range map[string]struct {
		edit func(*Repo) (*Edit, error)
		gone []string
	}{
		"a version of its own":         {provider("two", "aws"), []string{"infrastructure provider aws v2.13.0"}},
		"a version that another has":   {provider("two", "docker"), nil},
		"a version from another place": {provider("one", "vsphere"), []string{"infrastructure provider vsphere v1.15.0"}},
		"no version":                   {provider("two", "gcp"), []string{"infrastructure provider gcp v1.0.0"}},
		"a management cluster": {
			func(r *Repo) (*Edit, error) { return r.RemoveManagementCluster("two") },
			[]string{
				"cert-manager v1.21.0", "core provider cluster-api v1.13.1", "infrastructure provider aws v2.13.0",
				"infrastructure provider gcp v1.0.0", "infrastructure provider vsphere v1.15.0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, v1alpha1.FileName, []byte(fleet))
			r := reopen(t, dir)
			image := v1alpha1.LockedImage{Name: "example.com/manager:v1", Digest: "sha256:" + strings.Repeat("0", 64)}
			e, err := r.Lock(&v1alpha1.Lock{Components: all, Images: []v1alpha1.LockedImage{image}})
			_, r = done(t, r, e, err)
			before := must(r.readLock())
			e, err = tc.edit(r)
			_, r = done(t, r, e, err)
			after := must(r.readLock())
			var gone []string
			for _, c := range before.Components {
				if after.Find(c) == nil {
					gone = append(gone, c.String())
				}
			}
			if got := strings.Join(gone, ", "); got != strings.Join(tc.gone, ", ") {
				t.Errorf("the lock has no longer %s", got)
			}
			told := strings.Contains(strings.Join(e.Notes, "\n"), "those of "+strings.Join(tc.gone, ", ")+": `fleetctl lock`")
			if told != (len(tc.gone) > 0) || len(after.Images) != 1 {
				t.Errorf("it says %q", e.Notes)
			}
		})
	}
}
