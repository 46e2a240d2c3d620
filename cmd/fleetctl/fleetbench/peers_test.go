//go:build e2e

package fleetbench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// wide is how many runs of `helm template` go on at once.
const wide = 2

// helm renders each cluster with Helm's own program, two at once. Of a large fleet it renders a sample, and says so.
func (m *bench) helm(dir string, n int) took {
	values := m.values(dir, min(n, m.sample))
	jobs := make(chan int)
	go func() {
		defer close(jobs)
		for i := range values {
			jobs <- i
		}
	}()
	var mu sync.Mutex
	var sum took
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	for range wide {
		wg.Go(func() {
			for i := range jobs {
				name := rendertest.Name(i)
				cmd := exec.CommandContext(m.Context(), filepath.Join(m.peers, "helm"), "template", name,
					filepath.Join(dir, "charts", rendertest.Flavour(i)), "--namespace", name, "--values", values[i], "--kube-version", "v1.36.3")
				t, err := run(cmd)
				mu.Lock()
				sum.cpu, sum.peak = sum.cpu+t.cpu, max(sum.peak, t.peak)
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed != nil {
		m.Fatalf("helm template: %v", failed)
	}
	sum.wall = time.Since(start)
	return sum.scaled(len(values), n, "two at once")
}

// scaled says what a sample stands for.
func (t took) scaled(measured, all int, note string) took {
	t.note = note
	if measured < all {
		t.wall = t.wall * time.Duration(all) / time.Duration(measured)
		t.cpu = t.cpu * time.Duration(all) / time.Duration(measured)
		t.note = fmt.Sprintf("%s; measured on %d, times %d/%d", note, measured, all, measured)
	}
	return t
}

// values writes the values of the first clusters to files of their own, as a person would for Helm.
func (m *bench) values(dir string, n int) []string {
	out := m.TempDir()
	files := make([]string, 0, n)
	for i := range n {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(rendertest.File(i))))
		if err != nil {
			m.Fatal(err)
		}
		_, text, _ := strings.Cut(string(content), "\n---\n")
		var release struct {
			Spec struct {
				Values map[string]any `json:"values"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(text), &release); err != nil {
			m.Fatal(err)
		}
		if content, err = yaml.Marshal(release.Spec.Values); err != nil {
			m.Fatal(err)
		}
		name := filepath.Join(out, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(name, content, 0o644); err != nil {
			m.Fatal(err)
		}
		files = append(files, name)
	}
	return files
}

// kustomize builds the folders of the environments, one after the other, with the kustomization.yaml that Flux would generate. It looks at
// nothing inside of a HelmRelease.
func (m *bench) kustomize(dir string, n int) took {
	if n > 10*m.sample {
		return took{note: "not measured: its time grows with the square of the clusters"}
	}
	var sum took
	for _, environment := range rendertest.Environments {
		folder := filepath.Join(dir, filepath.FromSlash(rendertest.Layout.Environment(environment)))
		k := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- common\n"
		charts, err := filepath.Glob(filepath.Join(folder, "chart-*.yaml"))
		if err != nil {
			m.Fatal(err)
		}
		for _, chart := range charts {
			k += "- " + filepath.Base(chart) + "\n"
		}
		for i := range n {
			if rendertest.Environment(i) == environment {
				k += "- " + rendertest.Name(i) + "/cluster.yaml\n"
			}
		}
		file := filepath.Join(folder, "kustomization.yaml")
		if err := os.WriteFile(file, []byte(k), 0o644); err != nil {
			m.Fatal(err)
		}
		t, err := run(exec.CommandContext(m.Context(), filepath.Join(m.peers, "kustomize"), "build", folder))
		if err != nil {
			m.Fatalf("kustomize build: %v", err)
		}
		if err := os.Remove(file); err != nil {
			m.Fatal(err)
		}
		sum.wall, sum.cpu, sum.peak = sum.wall+t.wall, sum.cpu+t.cpu, max(sum.peak, t.peak)
	}
	sum.note = "of the environments' folders; no chart is rendered"
	return sum
}

// kubeconform returns what has it judge the files of the rendered fleet, which it does not have to render: validate renders, and reads the
// repo besides. It gets the same CRDs, as JSON schemas that refuse unknown fields; for the kinds of every cluster, Namespaces most of all,
// it has none and passes them over.
func (m *bench) kubeconform(dir string) func() took {
	out := filepath.Join(m.TempDir(), "rendered")
	m.own(dir, "render", "--output-dir", out)
	args := append(m.kubeconformArgs(), "-summary", out)
	return func() took {
		t, err := run(exec.CommandContext(m.Context(), filepath.Join(m.peers, "kubeconform"), args...))
		if err != nil {
			m.Fatalf("kubeconform: %v", err)
		}
		t.note = "of files that are rendered already"
		return t
	}
}

func (m *bench) kubeconformArgs() []string {
	return []string{
		"-strict", "-ignore-missing-schemas", "-schema-location",
		filepath.Join(m.schemas(), "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"),
	}
}

// schemas turns the CRDs that validate gets into what kubeconform reads.
func (m *bench) schemas() string {
	out := m.TempDir()
	files, err := filepath.Glob(filepath.Join(need(m.B, "FLEETCTL_BENCH_CRDS"), "*.yaml"))
	if err != nil {
		m.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			m.Fatal(err)
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			m.schema(out, document)
		}
	}
	return out
}

func (m *bench) schema(out, document string) {
	var crd struct {
		Kind string `json:"kind"`
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPI map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(document), &crd); err != nil || crd.Kind != "CustomResourceDefinition" {
		return
	}
	for _, v := range crd.Spec.Versions {
		closed(v.Schema.OpenAPI, true)
		content, err := json.Marshal(v.Schema.OpenAPI)
		if err != nil {
			m.Fatal(err)
		}
		name := fmt.Sprintf("%s-%s-%s.json", strings.ToLower(crd.Spec.Names.Kind), crd.Spec.Group, v.Name)
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			m.Fatal(err)
		}
	}
}

// closed makes a schema refuse the fields that it does not name, as the tools that make schemas for kubeconform do. The top has metadata of
// its own.
func closed(schema map[string]any, top bool) {
	fields, _ := schema["properties"].(map[string]any)
	if _, open := schema["additionalProperties"]; len(fields) > 0 && !open && schema["x-kubernetes-preserve-unknown-fields"] != true {
		schema["additionalProperties"] = false
	}
	for name, field := range fields {
		if inner, ok := field.(map[string]any); ok && !(top && name == "metadata") {
			closed(inner, false)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[name].(map[string]any); ok {
			closed(inner, false)
		}
	}
}
