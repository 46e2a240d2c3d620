package scaffold_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Renovate's patterns find each version in a fleet.yaml, as people and as fleetctl write it, and name the right project for it.
func TestRenovateFindsVersions(t *testing.T) {
	files, err := scaffold.CIFiles(v1alpha1.ForgeGitHub, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f manifest.File) bool { return path.Base(f.Path) == "renovate.json" })
	var config struct {
		Flux, Kubernetes struct{ ManagerFilePatterns []string }
		CustomManagers   []struct {
			MatchStrings    []string
			DepNameTemplate string
		}
	}
	if err := json.Unmarshal(files[i].Content, &config); err != nil {
		t.Fatal(err)
	}
	// Renovate's own manager for manifests reads no file unless it is told which ones.
	for _, file := range []string{
		"addons/cni/cilium/manifests.yaml", "features/metrics/namespaced/deployment.yaml", "providers/aws/v1/clusters/dev/common/apps/proxy.yml",
		"tenants/shop/base/web.yaml",
	} {
		for manager, patterns := range map[string][]string{
			"flux": config.Flux.ManagerFilePatterns, "kubernetes": config.Kubernetes.ManagerFilePatterns,
		} {
			if !slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(strings.Trim(p, "/")).MatchString(file) }) {
				t.Errorf("Renovate's manager %s does not read %s", manager, file)
			}
		}
	}
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
spec:
  flux:
    # image automation
    components:
    - source-controller
    - kustomize-controller
    version: v2.9.5
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.36.3
    certManager:
      version: v1.19.1
    providers:
    - name: aws
      version: v2.13.0
    - {name: gcp, version: v1.13.1}
    - name: cluster-api
      type: core
      version: v1.14.2
    - name: azure
    - name: vsphere
      version: v1.14.0 # held
`
	const flow = `spec:
  managementClusters:
  - name: mgmt
    certManager: {version: v1.19.2, url: "https://example.com"}
  flux: {components: [source-controller, kustomize-controller], version: v2.9.6}
`
	const more = `  - {name: other, kubernetesVersion: "v1.36.5", host: {type: kind}}
    providers:
    - {name: openstack, version: v0.13.0}
    - {name: talos, type: bootstrap, version: v0.6.1}
    - {name: talos, type: control-plane, version: v0.5.2}
    - name: in-cluster
      type: ipam
      version: v1.0.3
    kubernetesVersion: "v1.36.4" # held
`
	const edited = `  - name: edited
    certManager: # ours
      # with a comment
      version: "v1.19.3"
    providers:
    - name: "nutanix" # tested in dev
      url: https://example.com/infrastructure-components.yaml
      # held
      version: 'v1.7.0'
`
	found := map[string]string{}
	for _, m := range config.CustomManagers {
		for _, pattern := range m.MatchStrings {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(fleet+flow+more+edited, -1) {
				found[m.DepNameTemplate] += " " + match[1]
			}
		}
	}
	for name, version := range map[string]string{
		"kubernetes-sigs/cluster-api-provider-openstack": "v0.13.0", "siderolabs/cluster-api-bootstrap-provider-talos": "v0.6.1",
		"siderolabs/cluster-api-control-plane-provider-talos": "v0.5.2", "kubernetes-sigs/cluster-api-ipam-provider-in-cluster": "v1.0.3",
		"kubernetes/kubernetes": "v1.36.3 v1.36.4 v1.36.5",
		"fluxcd/flux2":          "v2.9.5 v2.9.6", "cert-manager/cert-manager": "v1.19.1 v1.19.3 v1.19.2", "kubernetes-sigs/cluster-api": "v1.14.2",
		"kubernetes-sigs/cluster-api-provider-aws": "v2.13.0", "kubernetes-sigs/cluster-api-provider-gcp": "v1.13.1",
		"nutanix-cloud-native/cluster-api-provider-nutanix": "v1.7.0",
		"kubernetes-sigs/cluster-api-provider-vsphere":      "v1.14.0", "kubernetes-sigs/cluster-api-provider-azure": "",
	} {
		if got := strings.TrimSpace(found[name]); got != version {
			t.Errorf("%s: found %q, want %q", name, got, version)
		}
	}
}
