package render_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fleetctl/fleetctl/pkg/render"
)

var update = flag.Bool("update", false, "rewrite what the cases expect")

const fleetYAML = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec:
  git: {url: https://git.example.com/fleet.git}
  environments: [{name: dev}, {name: prod}]
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.36.3
    providers: [{name: docker}]
`

// Each case is a fleet repo and its rendered form: the objects with their sources, then the findings. A case without a fleet.yaml gets a
// common one.
func TestCases(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			files := map[string]string{"fleet.yaml": fleetYAML}
			kept := archive.Files[:0:0]
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				files[f.Name] = string(f.Data)
				kept = append(kept, f)
			}
			dir := repoWith(t, files)
			cache := t.TempDir()
			got := describe(t, dir, cache)
			if again := describe(t, dir, cache); again != got {
				t.Errorf("from the cache it is something else:\n%s", cmp.Diff(got, again))
			}
			if *update {
				archive.Files = append(kept, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got (-update rewrites it):\n%s", diff)
			}
		})
	}
}

// repoWith writes files into a new folder.
func repoWith(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// describe renders all and writes it down.
func describe(t *testing.T, dir, cache string) string {
	t.Helper()
	res, err := renderer(t, dir, cache).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range res.Objects {
		fmt.Fprintf(&b, "--- # %s:%d", o.Source.File, o.Source.Line)
		for _, part := range []struct{ name, value string }{
			{"template", o.Template},
			{"owner", o.Owner.String()},
			{"git", o.GitSource},
			{"environment", o.Environment},
			{"cluster", o.Cluster},
			{"targets", strings.Join(o.Targets, " ")},
		} {
			if part.value != "" {
				fmt.Fprintf(&b, ", %s %s", part.name, part.value)
			}
		}
		if o.Suspended {
			b.WriteString(", suspended")
		}
		fmt.Fprintf(&b, "\n%s", o.YAML())
	}
	for _, f := range res.Findings {
		fmt.Fprintf(&b, "# %s %s %s", f.Severity, f.Rule, f)
		if f.Hint != "" {
			fmt.Fprintf(&b, " (%s)", f.Hint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A cluster and an environment are parts of the whole, and names that are not there are told.
func TestScopes(t *testing.T) {
	dir := repoWith(t, map[string]string{
		"fleet.yaml": fleetYAML,
		"providers/docker/v1/clusters/dev/a/cluster.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
		"providers/docker/v1/clusters/dev/b/cluster.yaml":  "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
		"providers/docker/v1/clusters/prod/b/cluster.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
	})
	r := renderer(t, dir, "")
	for name, want := range map[string]string{"a": "Namespace a", "dev/b": "Namespace b", "prod/b": "Namespace b"} {
		res, err := r.Cluster(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Objects) != 1 || res.Objects[0].ID() != want {
			t.Errorf("cluster %s: got %v", name, res.Objects)
		}
	}
	res, err := r.Environment(t.Context(), "dev")
	if err != nil || len(res.Objects) != 2 {
		t.Errorf("environment dev: got %v, %v", res, err)
	}
	for _, name := range []string{"b", "c", "qa/a", "../a", ""} {
		if res, err := r.Cluster(t.Context(), name); err == nil {
			t.Errorf("cluster %q: got %v", name, res)
		}
	}
	if _, err := r.Environment(t.Context(), "qa"); err == nil {
		t.Error("environment qa: want an error")
	}
}

// Nothing outside of the repo is read through a symbolic link.
func TestLinkOut(t *testing.T) {
	outside := repoWith(t, map[string]string{"x.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: outside}\n"})
	dir := repoWith(t, map[string]string{"fleet.yaml": fleetYAML, "providers/docker/v1/clusters/dev/a/readme.txt": ""})
	if err := os.Symlink(filepath.Join(outside, "x.yaml"), filepath.Join(dir, "providers/docker/v1/clusters/dev/a/cluster.yaml")); err != nil {
		t.Fatal(err)
	}
	res, err := renderer(t, dir, "").All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Objects) != 0 || len(res.Findings) != 1 || res.Findings[0].Rule != render.RulePath {
		t.Errorf("got %v and %v", res.Objects, res.Findings)
	}
}
