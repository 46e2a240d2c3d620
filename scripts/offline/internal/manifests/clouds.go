package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// AzureModule holds the Azure provider.
const AzureModule = "sigs.k8s.io/cluster-api-provider-azure"

const (
	awsModule     = "sigs.k8s.io/cluster-api-provider-aws/v2"
	gcpModule     = "sigs.k8s.io/cluster-api-provider-gcp"
	vsphereModule = "sigs.k8s.io/cluster-api-provider-vsphere"
	asoModule     = "github.com/Azure/azure-service-operator/v2"
)

// CloudModules are the modules whose folders hold the manifests of a cloud's provider, that of the provider first.
var CloudModules = map[string][]string{
	"aws": {awsModule}, "gcp": {gcpModule}, "azure": {AzureModule, asoModule}, "vsphere": {vsphereModule},
}

var cloudProviders = map[string]provider{
	"aws": {
		label: "infrastructure-aws", version: recipe.AWSProvider, components: "infrastructure-components.yaml", config: "config/default",
		staging: "gcr.io/k8s-staging-cluster-api-aws/cluster-api-aws-controller:latest", image: recipe.AWSImage,
	},
	"gcp": {
		label: "infrastructure-gcp", version: recipe.GCPProvider, components: "infrastructure-components.yaml", config: "config/default",
		staging: "gcr.io/k8s-staging-cluster-api-gcp/cluster-api-gcp-controller:e2e", image: recipe.GCPImage,
	},
	"azure": {
		label: "infrastructure-azure", version: recipe.AzureProvider, components: "infrastructure-components.yaml", config: "default",
		staging: "gcr.io/k8s-staging-cluster-api-azure/cluster-api-azure-controller:main", image: recipe.AzureImage,
	},
	"vsphere": {
		label: "infrastructure-vsphere", version: recipe.VSphereProvider, components: "infrastructure-components.yaml", config: "config/default",
		staging: "gcr.io/k8s-staging-capi-vsphere/cluster-api-vsphere-controller:main", image: recipe.VSphereImage,
	},
}

// CloudProvider returns the files of a cloud's repository, content by path in the bundle. modules are the folders of the cloud's
// CloudModules, by their paths.
func CloudProvider(cloud string, modules map[string]string) (map[string][]byte, error) {
	p, source := cloudProviders[cloud], modules[CloudModules[cloud][0]]
	metadata, err := os.ReadFile(filepath.Join(source, "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	if cloud == "azure" {
		work, err := os.MkdirTemp("", "azure-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(work)
		if err := azureConfig(work, source, modules[asoModule]); err != nil {
			return nil, err
		}
		source = work
	}
	return p.repository(source, metadata)
}

// cloudVersionsBefore are the versions of recipe.CloudProvidersBefore, by cloud.
var cloudVersionsBefore = map[string]string{"aws": recipe.AWSProviderBefore}

// CloudProviderBefore is CloudProvider for the release of recipe.CloudProvidersBefore. module is the folder of its module.
func CloudProviderBefore(cloud, module string) (map[string][]byte, error) {
	p, version := cloudProviders[cloud], cloudVersionsBefore[cloud]
	p.image = strings.TrimSuffix(p.image, p.version) + version
	p.version = version
	metadata, err := os.ReadFile(filepath.Join(module, "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	return p.repository(module, metadata)
}

// repository are the files of the provider's repository, content by path in the bundle. source is the folder that has its manifests.
func (p provider) repository(source string, metadata []byte) (map[string][]byte, error) {
	manifest, err := p.manifest(source)
	if err != nil {
		return nil, err
	}
	dir := path.Join("providers", p.label, p.version)
	return map[string][]byte{path.Join(dir, "metadata.yaml"): metadata, path.Join(dir, p.components): manifest}, nil
}

// azureConfig copies the Azure provider's config folder to work, and puts Azure Service Operator's manifest in the place of the
// address that it is downloaded from when the provider is released.
func azureConfig(work, module, operator string) error {
	if err := os.CopyFS(work, os.DirFS(filepath.Join(module, "config"))); err != nil {
		return err
	}
	file := filepath.Join(work, "aso", "kustomization.yaml")
	kustomization, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	local, err := localResources(kustomization, func(string) ([]byte, string, error) {
		manifest, err := serviceOperator(operator)
		return manifest, "operator.yaml", err
	}, filepath.Dir(file))
	if err != nil {
		return err
	}
	return os.WriteFile(file, local, 0o644)
}

// The module of a release carries the chart of the one before with everything that the build generates, and its own without.
const generatedBefore = "charts/azure-service-operator-2.12.0.tgz"

// serviceOperator is Azure Service Operator's release manifest without its CRDs: the chart in its module, completed by what only an
// archive of the release before has, webhook configurations and the manager's role.
func serviceOperator(module string) ([]byte, error) {
	dir := filepath.Join(module, "charts", "azure-service-operator")
	archive, err := os.Open(filepath.Join(module, generatedBefore))
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	before, err := loader.LoadArchiveFiles(archive)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", generatedBefore, err)
	}
	var files []*loader.BufferedFile
	for _, f := range before {
		if strings.HasPrefix(f.Name, "templates/generated/") {
			files = append(files, f)
		}
	}
	chart := os.DirFS(dir)
	err = fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		content, err := fs.ReadFile(chart, name)
		files = append(files, &loader.BufferedFile{Name: name, Data: content})
		return err
	})
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("read the chart of Azure Service Operator: %w", err)
	}
	// As the release manifest has it: credentials come in a Secret of the provider's, and nothing is walled off.
	given := map[string]any{
		"createAzureOperatorSecret": false,
		"networkPolicies":           map[string]any{"enable": false},
		"image":                     map[string]any{"repository": recipe.AzureServiceOperatorImage},
	}
	release := chartutil.ReleaseOptions{Name: "azureserviceoperator", Namespace: "azureserviceoperator-system", Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(loaded, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values of Azure Service Operator: %w", err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render Azure Service Operator: %w", err)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + release.Namespace + "\n"
	return joined([]byte(namespace), rendered), nil
}

// ServiceOperatorCRDs are the CRDs that Azure Service Operator's image holds for itself, by file name: those that the Azure
// provider installs, which are its own of the same release.
func ServiceOperatorCRDs(azure string) (map[string][]byte, error) {
	raw, err := os.ReadFile(filepath.Join(azure, "config", "aso", "crds.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for document := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var crd struct {
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &crd); err != nil {
			return nil, err
		}
		if crd.Metadata.Name == "" {
			return nil, errors.New("a CRD of Azure Service Operator has no name")
		}
		files[crd.Metadata.Name+".yaml"] = document
	}
	return files, nil
}
