package scaffold

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/templates"
)

//go:embed files
var files embed.FS

// RepoOptions describe a new fleet repo with one management cluster.
type RepoOptions struct {
	// Fleet is the fleet's name.
	Fleet string
	// FleetYAML is the content of fleet.yaml.
	FleetYAML []byte
	// ManagementCluster is the name of the management cluster.
	ManagementCluster string
	// Layout of the management cluster.
	Layout layout.Layout
	// Environments of the management cluster.
	Environments []Environment
	// Charts are the flavours, from Flavours, whose charts go into the repo.
	Charts []string
	// KubernetesVersion of the example cluster in the README.
	KubernetesVersion string
	// Local means that the repo has no remote, so that a commit alone changes the fleet.
	Local bool
}

// Flavours returns the names of fleetctl's charts, sorted.
func Flavours() ([]string, error) {
	entries, err := templates.Charts.ReadDir(layout.ChartsDir)
	if err != nil {
		return nil, fmt.Errorf("list charts: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// flavours is the list of charts by infrastructure provider, sorted. templates/charts has a folder for each flavour. The first flavour of a
// provider is the one to begin with: in-memory, which the docker provider contains, or the flavour with the cloud's managed control plane.
var flavours = []struct {
	provider string
	charts   []string
}{
	{"aws", []string{"aws-eks", "aws-kubeadm"}},
	{"azure", []string{"azure-aks", "azure-kubeadm"}},
	{"docker", []string{"docker", "in-memory"}},
	{"gcp", []string{"gcp-gke", "gcp-kubeadm"}},
	{"vsphere", []string{"vsphere-kubeadm"}},
}

// Providers returns the infrastructure providers that fleetctl has charts for, sorted. Other providers need a chart that the team writes.
func Providers() []string {
	var names []string
	for _, f := range flavours {
		names = append(names, f.provider)
	}
	return names
}

// FlavoursFor returns the Flavours of an infrastructure provider. The first is the one to begin with. The list is empty for a provider
// without a chart.
func FlavoursFor(infrastructureProvider string) []string {
	for _, f := range flavours {
		if f.provider == infrastructureProvider {
			return slices.Clone(f.charts)
		}
	}
	return nil
}

// FlavoursText returns the flavours by provider, for a sentence: aws (aws-eks, aws-kubeadm), vsphere (vsphere-kubeadm).
func FlavoursText() string {
	var parts []string
	for _, f := range flavours {
		parts = append(parts, f.provider+" ("+strings.Join(f.charts, ", ")+")")
	}
	return strings.Join(parts, ", ")
}

// ExampleValues returns the values of a small cluster of a flavour: the example in its chart's schema, with the given Kubernetes version.
// It returns an error for an unknown flavour.
func ExampleValues(flavour, kubernetesVersion string) (map[string]any, error) {
	example, err := example(flavour)
	if err == nil {
		example["kubernetesVersion"] = kubernetesVersion
	}
	return example, err
}

// ExampleVersion returns the Kubernetes version in the charts' examples.
func ExampleVersion() (string, error) {
	example, err := example("in-memory")
	if err != nil {
		return "", err
	}
	version, _ := example["kubernetesVersion"].(string)
	return version, nil
}

// example returns the example in the schema of a flavour's chart.
func example(flavour string) (map[string]any, error) {
	content, err := templates.Charts.ReadFile(path.Join(layout.ChartsDir, flavour, "values.schema.json"))
	if err != nil {
		return nil, fmt.Errorf("read the schema of flavour %s: %w", flavour, err)
	}
	var schema struct{ Examples []map[string]any }
	if err := yaml.Unmarshal(content, &schema); err != nil {
		return nil, fmt.Errorf("read the schema of flavour %s: %w", flavour, err)
	}
	if len(schema.Examples) == 0 {
		return nil, fmt.Errorf("the schema of flavour %s has no example", flavour)
	}
	return schema.Examples[0], nil
}

// Repo returns all files of a new fleet repo, except for those of flux-system (see pkg/flux). The files belong to the user once they are in
// the repo, so write only the Missing files to an existing repo. Errors: a bad name, an unknown chart.
func Repo(opts RepoOptions) ([]manifest.File, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	out := []manifest.File{{Path: "fleet.yaml", Content: opts.FleetYAML}}
	for target, name := range map[string]string{"README.md": "README.md", ".gitignore": "gitignore"} {
		content, err := execute(name, readme(opts))
		if err != nil {
			return nil, err
		}
		out = append(out, manifest.File{Path: target, Content: content})
	}
	for _, env := range opts.Environments {
		more, err := EnvironmentFiles(opts.Layout, env)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for _, chart := range opts.Charts {
		more, err := ChartFiles(chart)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return sorted(out), nil
}

// sorted sorts files by their paths.
func sorted(files []manifest.File) []manifest.File {
	slices.SortFunc(files, func(a, b manifest.File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// readme is the data of the README's template.
type readme RepoOptions

// Example returns the files of a cluster "demo".
func (r readme) Example() ([]manifest.File, error) {
	values, err := ExampleValues(r.Charts[0], r.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	chart, err := EnvironmentChart(r.Layout, r.Environments[0].Name, r.Charts[0])
	if err != nil {
		return nil, err
	}
	files, err := ClusterFiles(ClusterOptions{
		Name: "demo", Layout: r.Layout, Environment: r.Environments[0].Name, Flavour: r.Charts[0], Values: values,
	})
	return append([]manifest.File{chart}, files...), err
}

// ExampleDir returns the folder of the cluster "demo".
func (r readme) ExampleDir() string { return r.Layout.Cluster(r.Environments[0].Name, "demo") }

func (o RepoOptions) check() error {
	if err := CheckName("fleet", o.Fleet, 63); err != nil {
		return err
	}
	if err := CheckName("management cluster", o.ManagementCluster, maxClusterName); err != nil {
		return err
	}
	if len(o.Charts) > 0 && o.KubernetesVersion == "" {
		return errors.New("generate fleet repo: a Kubernetes version is needed for the example of a cluster")
	}
	return CheckLayout(o.Layout)
}

// ChartFiles returns the files of a flavour's chart, for charts/<flavour> of the fleet repo.
func ChartFiles(flavour string) ([]manifest.File, error) {
	known, err := Flavours()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(known, flavour) {
		return nil, diag.Errorf(fmt.Sprintf("the flavours are %v", known), "unknown flavour %q", flavour)
	}
	var out []manifest.File
	err = fs.WalkDir(templates.Charts, path.Join(layout.ChartsDir, flavour), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := templates.Charts.ReadFile(name)
		out = append(out, manifest.File{Path: name, Content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chart %s: %w", flavour, err)
	}
	return out, nil
}

// Missing returns the files that do not exist yet. exists tells whether a slash-separated path exists. A chart counts as a whole: if its
// Chart.yaml exists, none of its files is missing. The folders of an existing environment (see FolderFiles) count as a whole too, because a
// fleet may do without them. A kustomization.yaml exists under any of the names that kustomize reads, because it builds no folder with two.
func Missing(files []manifest.File, exists func(path string) bool) []manifest.File {
	there := func(name string) bool {
		if !layout.IsKustomization(name) {
			return exists(name)
		}
		return slices.ContainsFunc(layout.KustomizationNames(), func(other string) bool { return exists(path.Join(path.Dir(name), other)) })
	}
	return slices.DeleteFunc(slices.Clone(files), func(f manifest.File) bool {
		if chart, ok := chartOf(f.Path); ok && exists(path.Join(chart, "Chart.yaml")) {
			return true
		}
		if common := environmentOfFolders(f.Path); common != "" && there(path.Join(common, "kustomization.yaml")) {
			return true
		}
		return there(f.Path)
	})
}

// chartOf returns the folder of the chart that a file belongs to.
func chartOf(name string) (string, bool) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Dir(dir) == layout.ChartsDir {
			return dir, true
		}
	}
	return "", false
}

// execute renders one of the embedded files. Their delimiters are << and >>, so that the braces of Helm stay as they are.
func execute(name string, data any) ([]byte, error) {
	t, err := template.New(path.Base(name)).Delims("<<", ">>").Funcs(template.FuncMap{"base": path.Base}).Option("missingkey=error").ParseFS(
		files, "files/"+name)
	if err != nil {
		return nil, fmt.Errorf("generate %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("generate %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Digest returns the SHA-256 of the paths and contents of files, in hexadecimal. It is the same whether their lines end with LF or with
// CRLF, as Git for Windows writes them.
func Digest(files []manifest.File) string {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b manifest.File) int { return cmp.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, f := range sorted {
		content := manifest.LF(f.Content)
		fmt.Fprintf(sum, "%s %d\n", f.Path, len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
