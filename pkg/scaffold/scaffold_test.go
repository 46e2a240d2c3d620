package scaffold

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares files with the archive testdata/<name>.
func golden(t *testing.T, name string, files []manifest.File) {
	t.Helper()
	var got txtar.Archive
	for _, f := range files {
		got.Files = append(got.Files, txtar.File{Name: f.Path, Data: f.Content})
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", name, diff)
	}
}

var docker = layout.Layout{Cloud: "docker", Generation: "v1"}

func repoOptions() RepoOptions {
	return RepoOptions{
		Fleet: "acme", FleetYAML: []byte("kind: Fleet\n"), ManagementCluster: "mgmt", Layout: docker,
		Environments: []Environment{{Name: "dev"}}, Charts: []string{"in-memory"}, KubernetesVersion: "v1.36.3", Local: true,
	}
}

func TestRepo(t *testing.T) {
	files, err := Repo(repoOptions())
	if err != nil {
		t.Fatal(err)
	}
	var own []manifest.File
	for _, f := range files {
		if !strings.HasPrefix(f.Path, layout.ChartsDir+"/") {
			own = append(own, f)
		}
	}
	golden(t, "repo-local.txtar", own)
	if len(own) == len(files) {
		t.Error("the chart is missing")
	}

	opts := repoOptions()
	opts.Local, opts.Environments, opts.Charts = false, []Environment{{Name: "staging"}, {Name: "production", Source: "release"}}, nil
	if files, err = Repo(opts); err != nil {
		t.Fatal(err)
	}
	golden(t, "repo-remote.txtar", files)
}

// Files contain names without quotes, so a name has to be text in YAML.
func TestNamesAreText(t *testing.T) {
	for _, name := range []string{"007", "1e3", "12", "true", "no", "on", "null", "y", "0x1f"} {
		if err := CheckName("cluster", name, 63); err == nil || !strings.Contains(err.Error(), "is not text in YAML") {
			t.Errorf("%s: got %v", name, err)
		}
		if err := CheckLabel("pool", name, 63); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"shop", "v1", "1a", "07-1", "edge-1", "none"} {
		if err := CheckName("cluster", name, 63); err != nil {
			t.Error(err)
		}
	}
}

func TestRepoErrors(t *testing.T) {
	for name, change := range map[string]func(*RepoOptions){
		"fleet":              func(o *RepoOptions) { o.Fleet = "Acme" },
		"management cluster": func(o *RepoOptions) { o.ManagementCluster = strings.Repeat("m", 41) },
		"cloud":              func(o *RepoOptions) { o.Layout.Cloud = ".." },
		"generation":         func(o *RepoOptions) { o.Layout.Generation = "a/b" },
		"environment":        func(o *RepoOptions) { o.Environments = []Environment{{Name: "-dev"}} },
		"source":             func(o *RepoOptions) { o.Environments = []Environment{{Name: "dev", Source: "a/b"}} },
		"flavour":            func(o *RepoOptions) { o.Charts = []string{"../docker"} },
		"Kubernetes version": func(o *RepoOptions) { o.KubernetesVersion = "" },
	} {
		opts := repoOptions()
		change(&opts)
		if _, err := Repo(opts); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: got %v", name, err)
		}
	}
}

func TestClusterFiles(t *testing.T) {
	opts := ClusterOptions{Name: "demo", Layout: docker, Environment: "dev", Flavour: "docker", Values: map[string]any{
		"kubernetesVersion": "v1.36.3",
		"pools":             []any{map[string]any{"name": "md-0", "replicas": 2}},
		"kubeletExtraArgs":  map[string]any{"fail-cgroupv1": "false"},
	}}
	files, err := ClusterFiles(opts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cluster.txtar", files)

	opts.Values = nil
	if files, err = ClusterFiles(opts); err != nil {
		t.Fatal(err)
	}
	golden(t, "cluster-defaults.txtar", files)

	for _, name := range []string{"", "common", "default", "kube-system", "flux-system", "a.b", "../x", strings.Repeat("a", 41)} {
		opts.Name = name
		if _, err := ClusterFiles(opts); err == nil {
			t.Errorf("cluster %q: want an error", name)
		}
	}
}

// An environment's folder builds as kustomize-controller builds it, with and without clusters, and labels the common objects.
func TestEnvironmentBuilds(t *testing.T) {
	env, err := EnvironmentFiles(docker, Environment{Name: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	fs := filesys.MakeFsInMemory()
	write := func(files []manifest.File) {
		for _, f := range files {
			if err := fs.WriteFile(f.Path, f.Content); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(env)
	// kustomize-controller generates this file. It lists sub-folders that have a kustomization.yaml, and every other YAML file by name.
	build := func(resources ...string) string {
		k := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
		for _, r := range resources {
			k += fmt.Sprintf("- %s\n", r)
		}
		write([]manifest.File{{Path: "providers/docker/v1/clusters/dev/kustomization.yaml", Content: []byte(k)}})
		res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "providers/docker/v1/clusters/dev")
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range res.Resources() {
			ids = append(ids, r.GetKind()+" "+r.GetNamespace()+"/"+r.GetName()+" "+r.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"])
		}
		return strings.Join(ids, "\n")
	}
	if got := build("common"); got != "" {
		t.Errorf("without clusters: got %s", got)
	}
	for _, name := range []string{"a", "b"} {
		files, err := ClusterFiles(ClusterOptions{Name: name, Layout: docker, Environment: "dev", Flavour: "in-memory"})
		if err != nil {
			t.Fatal(err)
		}
		write(files)
	}
	want := "Namespace /a disabled\nHelmRelease a/a disabled\nNamespace /b disabled\nHelmRelease b/b disabled"
	if diff := cmp.Diff(want, build("common", "a/cluster.yaml", "b/cluster.yaml")); diff != "" {
		t.Errorf("with clusters (-want +got):\n%s", diff)
	}
}

// Flux applies nothing of an environment if it holds an encrypted Secret and is not told to decrypt: a Secret may lie beside each cluster.
func TestEnvironmentDecrypts(t *testing.T) {
	for _, source := range []string{"", "release"} {
		files, err := EnvironmentFiles(docker, Environment{Name: "production", Source: source})
		if err != nil {
			t.Fatal(err)
		}
		var applied struct {
			Kind string
			Spec struct{ Decryption struct{ Provider string } }
		}
		if err := yaml.Unmarshal(files[0].Content, &applied); err != nil || applied.Kind != "Kustomization" ||
			applied.Spec.Decryption.Provider != "sops" {
			t.Errorf("%s: %v, %v", files[0].Path, applied, err)
		}
	}
}

// An environment that follows another channel names the channel in one file. The charts of its clusters, and the Flux objects beside them,
// come from that channel too, whatever source their files name.
func TestEnvironmentFollowsItsChannel(t *testing.T) {
	env, err := EnvironmentFiles(docker, Environment{Name: "production", Source: "release"})
	if err != nil {
		t.Fatal(err)
	}
	var applied struct {
		Spec struct {
			SourceRef struct{ Name string } `yaml:"sourceRef"`
			Patches   any
		}
	}
	if err := yaml.Unmarshal(env[0].Content, &applied); err != nil || applied.Spec.SourceRef.Name != "release" {
		t.Fatal(applied, err)
	}
	cluster, err := ClusterFiles(ClusterOptions{Name: "a", Layout: docker, Environment: "production", Flavour: "in-memory"})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := EnvironmentChart(docker, "production", "in-memory")
	if err != nil {
		t.Fatal(err)
	}
	const flux = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: a, labels: {LABEL}}
spec: {sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}
`
	chart := `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: of-a-registry, namespace: flux-system}
spec: {chart: x, sourceRef: {kind: HelmRepository, name: x}}
`
	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{
		"cluster.yaml", "chart-in-memory.yaml", "sync.yaml", "own.yaml",
		"chart.yaml",
	}, "patches": applied.Spec.Patches})
	if err != nil {
		t.Fatal(err)
	}
	fs := filesys.MakeFsInMemory()
	for name, content := range map[string]string{
		"kustomization.yaml": string(kustomization), "cluster.yaml": string(cluster[0].Content), "chart.yaml": chart,
		"chart-in-memory.yaml": string(shared.Content),
		"sync.yaml":            strings.NewReplacer("NAME", "sync", "LABEL", "").Replace(flux),
		"own.yaml":             strings.NewReplacer("NAME", "own", "LABEL", "fleetctl.dev/channel: own").Replace(flux),
	} {
		if err := fs.WriteFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, ".")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range res.Resources() {
		for _, field := range []string{"spec.sourceRef.name", "spec.chartRef.name"} {
			if name, err := r.GetString(field); err == nil {
				got[r.GetName()] = name
			}
		}
	}
	want := map[string]string{
		"a": "production-in-memory", "production-in-memory": "release", "sync": "release",
		"own": "flux-system", "of-a-registry": "x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	files, err := Repo(repoOptions())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"README.md": true, "charts/in-memory/Chart.yaml": true}
	for _, f := range Missing(files, func(p string) bool { return there[p] }) {
		if f.Path == "README.md" || strings.HasPrefix(f.Path, "charts/") {
			t.Errorf("%s would be written over, or into, the user's own", f.Path)
		}
	}
	if got := Missing(files, func(string) bool { return false }); len(got) != len(files) {
		t.Errorf("an empty repo: got %d of %d files", len(got), len(files))
	}
}

// Every flavour belongs to one provider. Its chart has all files that Helm needs, and its example makes a cluster.
func TestFlavours(t *testing.T) {
	known, err := Flavours()
	if err != nil {
		t.Fatal(err)
	}
	var offered []string
	for _, provider := range append(Providers(), "unheard-of") {
		offered = append(offered, FlavoursFor(provider)...)
	}
	slices.Sort(offered)
	if diff := cmp.Diff(known, offered); diff != "" {
		t.Errorf("flavours (-known +offered for a provider):\n%s", diff)
	}
	for _, flavour := range known {
		files, err := ChartFiles(flavour)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"Chart.yaml", "README.md", "templates/_helpers.tpl", "templates/cluster.yaml", "templates/pools.yaml",
			"values.schema.json", "values.yaml",
		} {
			path := "charts/" + flavour + "/" + name
			if !slices.ContainsFunc(files, func(f manifest.File) bool { return f.Path == path }) {
				t.Errorf("%s is missing", path)
			}
		}
		opts := repoOptions()
		opts.Charts = []string{flavour}
		repo, err := Repo(opts)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(repo, func(f manifest.File) bool { return f.Path == "README.md" })
		for _, want := range []string{"chart: ./charts/" + flavour, "kubernetesVersion: v1.36.3", "pools:"} {
			if !strings.Contains(string(repo[i].Content), want) {
				t.Errorf("the README of a repo with %s lacks %q", flavour, want)
			}
		}
	}
	if _, err := ChartFiles("unheard-of"); err == nil {
		t.Error("an unknown flavour: want an error")
	}
	if _, err := ExampleValues("unheard-of", "v1.36.3"); err == nil {
		t.Error("the example of an unknown flavour: want an error")
	}
}
