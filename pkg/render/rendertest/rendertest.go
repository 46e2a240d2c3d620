// Package rendertest makes complete and valid fleet repos of any size for tests and benchmarks.
package rendertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// Environments and Flavours of a generated fleet. Its clusters use them in turn.
var (
	Environments = []string{"dev", "staging", "prod-eu", "prod-us"}
	Flavours     = allFlavours()
)

func allFlavours() []string {
	var all []string
	for _, provider := range scaffold.Providers() {
		all = append(all, scaffold.FlavoursFor(provider)...)
	}
	slices.Sort(all)
	return all
}

// Layout of the one management cluster.
var Layout = layout.Layout{Cloud: "docker", Generation: "v1"}

const fleetYAML = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: generated
spec:
  git:
    url: https://git.example.com/fleet.git
  environments:
  - name: dev
  - name: staging
  - name: prod-eu
  - name: prod-us
  managementClusters:
  - name: mgmt
    cloud: docker
    kubernetesVersion: v1.36.3
    providers:
    - name: docker
    - name: aws
    - name: azure
    - name: gcp
    - name: vsphere
`

// identities are the identities that the examples of the charts refer to.
const identities = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: VSphereClusterIdentity
metadata:
  name: fleet
spec:
  secretName: fleet
  allowedNamespaces:
    selector:
      matchLabels: {}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureClusterIdentity
metadata:
  name: fleet
  namespace: flux-system
spec:
  type: WorkloadIdentity
  clientID: 00000000-0000-0000-0000-000000000000
  tenantID: 00000000-0000-0000-0000-000000000000
  allowedNamespaces: {}
---
apiVersion: v1
kind: Secret
metadata:
  name: fleet
  namespace: capv-system
data:
  username: ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]
  password: ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:str]
sops:
  lastmodified: "2026-01-01T00:00:00Z"
`

// Name of the i-th cluster.
func Name(i int) string { return fmt.Sprintf("c%05d", i) }

// Environment of the i-th cluster.
func Environment(i int) string { return Environments[i%len(Environments)] }

// Flavour of the i-th cluster.
func Flavour(i int) string { return Flavours[i%len(Flavours)] }

// File that declares the i-th cluster, with forward slashes.
func File(i int) string { return Layout.Cluster(Environment(i), Name(i)) + "/cluster.yaml" }

// Write makes a fleet repo with so many clusters in dir.
func Write(dir string, clusters int) error {
	environments := make([]scaffold.Environment, len(Environments))
	for i, name := range Environments {
		environments[i].Name = name
	}
	files, err := scaffold.Repo(scaffold.RepoOptions{
		Fleet: "generated", FleetYAML: []byte(fleetYAML), ManagementCluster: "mgmt", Layout: Layout, Environments: environments,
		Charts: Flavours, KubernetesVersion: "v1.36.3",
	})
	if err != nil {
		return err
	}
	var changes manifest.ChangeSet
	changes.Write(files...)
	changes.Write(manifest.File{Path: Layout.Management() + "/identities.yaml", Content: []byte(identities)})
	for i := range clusters {
		values, err := scaffold.ExampleValues(Flavour(i), "v1.36.3")
		if err != nil {
			return err
		}
		values["labels"] = map[string]any{"fleet.example.com/number": fmt.Sprintf("n%d", i)}
		if Flavour(i) == "azure-kubeadm" {
			values["identity"] = map[string]any{"name": "fleet", "namespace": "flux-system"}
		}
		files, err := scaffold.ClusterFiles(scaffold.ClusterOptions{
			Name: Name(i), Layout: Layout, Environment: Environment(i), Flavour: Flavour(i), Values: values,
		})
		if err != nil {
			return err
		}
		chart, err := scaffold.EnvironmentChart(Layout, Environment(i), Flavour(i))
		if err != nil {
			return err
		}
		for _, f := range append(files, chart) {
			if err := write(dir, f); err != nil {
				return err
			}
		}
	}
	_, err = changes.Apply(dir)
	return err
}

// write does not flush the file, because thousands of files would take long and nobody needs them after a crash.
func write(dir string, f manifest.File) error {
	name := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, f.Content, 0o644)
}
