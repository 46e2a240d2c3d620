package manifests

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// provider is one Cluster API provider: where its module keeps its manifests, and what its release calls them.
type provider struct {
	label      string
	version    string
	components string
	config     string // folder, relative to that of its module
	staging    string // the image in the folder
	image      string // the image of the release
	test       bool   // lies in the module of Cluster API's tests
}

var providers = []provider{
	{
		label: "cluster-api", version: recipe.ClusterAPI, components: "core-components.yaml", config: "core/config/default",
		staging: "gcr.io/k8s-staging-cluster-api/cluster-api-controller:main",
		image:   "registry.k8s.io/cluster-api/cluster-api-controller:" + recipe.ClusterAPI,
	},
	{
		label: "bootstrap-kubeadm", version: recipe.ClusterAPI, components: "bootstrap-components.yaml",
		config:  "bootstrap/kubeadm/config/default",
		staging: "gcr.io/k8s-staging-cluster-api/kubeadm-bootstrap-controller:main",
		image:   "registry.k8s.io/cluster-api/kubeadm-bootstrap-controller:" + recipe.ClusterAPI,
	},
	{
		label: "control-plane-kubeadm", version: recipe.ClusterAPI, components: "control-plane-components.yaml",
		config:  "controlplane/kubeadm/config/default",
		staging: "gcr.io/k8s-staging-cluster-api/kubeadm-control-plane-controller:main",
		image:   "registry.k8s.io/cluster-api/kubeadm-control-plane-controller:" + recipe.ClusterAPI,
	},
	{
		label: "infrastructure-docker", version: recipe.DockerProvider, components: "infrastructure-components-development.yaml",
		config: "infrastructure/docker/config/default", test: true,
		staging: "gcr.io/k8s-staging-cluster-api/capd-manager:main",
		image:   "gcr.io/k8s-staging-cluster-api/capd-manager:" + recipe.DockerProvider,
	},
}

// Providers returns the files of clusterctl's repositories, content by path in the bundle. core and test are the folders
// of the modules sigs.k8s.io/cluster-api and sigs.k8s.io/cluster-api/test.
func Providers(core, test string) (map[string][]byte, error) {
	return files(providers, core, test)
}

// ProvidersBefore is Providers for recipe.ClusterAPIBefore.
func ProvidersBefore(core, test string) (map[string][]byte, error) {
	before := slices.Clone(providers)
	for i := range before {
		p := &before[i]
		p.image = strings.TrimSuffix(p.image, p.version) + recipe.ClusterAPIBefore
		p.version = recipe.ClusterAPIBefore
		p.config = strings.TrimPrefix(p.config, "core/") // the core provider was at the top then
	}
	return files(before, core, test)
}

func files(providers []provider, core, test string) (map[string][]byte, error) {
	metadata, err := os.ReadFile(filepath.Join(core, "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, p := range providers {
		module := core
		if p.test {
			module = test
		}
		manifest, err := p.manifest(module)
		if err != nil {
			return nil, err
		}
		dir := path.Join("providers", p.label, p.version)
		found[path.Join(dir, p.components)] = manifest
		// The core module's metadata names the contracts of all providers that are released with it.
		found[path.Join(dir, "metadata.yaml")] = metadata
	}
	return found, nil
}

func (p provider) manifest(module string) ([]byte, error) {
	manifest, err := build(filepath.Join(module, p.config))
	if err != nil {
		return nil, err
	}
	if manifest, err = replace(manifest, p.staging, p.image); err != nil {
		return nil, err
	}
	// As releases have it, and bundles need it: nobody asks a registry for what is there.
	return bytes.ReplaceAll(manifest, []byte("imagePullPolicy: Always"), []byte("imagePullPolicy: IfNotPresent")), nil
}
