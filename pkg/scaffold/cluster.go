package scaffold

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// ClusterOptions declare one workload cluster.
type ClusterOptions struct {
	// Name of the cluster, of its namespace and of its HelmRelease: a DNS label of at most 40 characters.
	Name string
	// Layout and Environment say where its files go.
	Layout      layout.Layout
	Environment string
	// Flavour is the name of the chart below charts/.
	Flavour string
	// Values of the chart, in YAML terms.
	Values map[string]any
	// Flux says which Flux applies the cluster's apps; empty means FluxNone.
	Flux FluxMode
	// CNI is the folder below addons/cni with the network of the cluster's pods. It is empty if the node image or the cloud has a network.
	CNI string
	// SourceDir is the folder with the GitRepository that the cluster's own Flux follows. If it is empty, the GitRepository is in the folder
	// of the environment.
	SourceDir string
}

// ClusterFiles returns providers/<cloud>/<generation>/clusters/<environment>/<name>/cluster.yaml and, if the cluster runs Flux, flux.yaml
// beside it. After a commit of these files Flux makes the cluster, and no other file has to list it. The cluster uses the HelmChart of
// EnvironmentChart, which all clusters of a flavour share.
func ClusterFiles(opts ClusterOptions) ([]manifest.File, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	values, err := yamlBelow(opts.Values, 4)
	if err != nil {
		return nil, fmt.Errorf("generate cluster %s: %w", opts.Name, err)
	}
	content, err := execute("cluster.yaml", struct{ Name, Flavour, Chart, Values string }{
		opts.Name, opts.Flavour, layout.ChartName(opts.Environment, opts.Flavour), values,
	})
	if err != nil {
		return nil, err
	}
	files := []manifest.File{{Path: path.Join(opts.Layout.Cluster(opts.Environment, opts.Name), "cluster.yaml"), Content: content}}
	flux, ok, err := opts.fluxFile()
	if err != nil {
		return nil, err
	}
	if ok {
		files = append(files, flux)
	}
	return files, nil
}

// EnvironmentChart returns providers/<cloud>/<generation>/clusters/<environment>/chart-<flavour>.yaml, the HelmChart that the
// environment's clusters of a flavour share. With a chart for each cluster, source-controller would unpack the whole repo once for every
// cluster and commit. Errors: a bad name.
func EnvironmentChart(at layout.Layout, environment, flavour string) (manifest.File, error) {
	if err := CheckLayout(at); err != nil {
		return manifest.File{}, err
	}
	if err := CheckName("environment", environment, 40); err != nil {
		return manifest.File{}, err
	}
	if err := CheckName("flavour", flavour, 63); err != nil {
		return manifest.File{}, err
	}
	content, err := execute("chart.yaml", struct{ Environment, Flavour, Name, Chart string }{
		environment, flavour, layout.ChartName(environment, flavour), "./" + path.Join(layout.ChartsDir, flavour),
	})
	return manifest.File{Path: at.EnvironmentChart(environment, flavour), Content: content}, err
}

func (o ClusterOptions) check() error {
	if err := CheckLayout(o.Layout); err != nil {
		return err
	}
	if err := CheckName("environment", o.Environment, 40); err != nil {
		return err
	}
	if err := CheckName("cluster", o.Name, maxClusterName); err != nil {
		return err
	}
	switch o.Name {
	case layout.CommonDir, "default", "flux-system", "kube-system", "kube-public", "kube-node-lease":
		return diag.Usage("choose another name", "cluster %q would use a folder or namespace of that name, which is reserved", o.Name)
	}
	return CheckName("flavour", o.Flavour, 63)
}

// yamlBelow returns values as YAML with sorted keys, and each line indented by indent spaces.
func yamlBelow(values map[string]any, indent int) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(values); err != nil {
		return "", err
	}
	if err := enc.Close(); err != nil {
		return "", err
	}
	prefix := bytes.Repeat([]byte(" "), indent)
	var indented bytes.Buffer
	for line := range bytes.Lines(out.Bytes()) {
		if len(bytes.TrimSpace(line)) > 0 {
			indented.Write(prefix)
		}
		indented.Write(line)
	}
	return strings.TrimSuffix(indented.String(), "\n"), nil
}
