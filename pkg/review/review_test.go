package review

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

func object(kind, namespace, name, cluster string, targets ...string) *render.Object {
	return &render.Object{
		APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name, ManagementCluster: "mgmt", Environment: "dev",
		Cluster: cluster, Targets: targets,
		JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q}}`, kind, name, namespace),
	}
}

// A comment is never longer than forges take, and what stands in the repo cannot end its table or its fence.
func TestMarkdown(t *testing.T) {
	r := &Report{}
	if got := r.Markdown(); !strings.Contains(got, "Nothing changes: Flux would apply the same.") || strings.Contains(got, "<details>") {
		t.Errorf("no difference: got %s", got)
	}
	for i := range 300 {
		r.Impact = append(r.Impact, Impact{Kind: ImpactScale, Environment: "a|b", Summary: fmt.Sprintf("scales <b> @team `%d`\n| x", i)})
		r.Objects = append(r.Objects, ObjectChange{Diff: "+a\n+```\n" + strings.Repeat("+line\n", 200)})
	}
	got := r.Markdown()
	if len(got) > 65_536 {
		t.Errorf("%d bytes are too many", len(got))
	}
	for _, want := range []string{
		"and 200 more", "more objects not shown", "````diff\n", "| `a\\|b` |",
		"``scales <b> @team `7`\\n\\| x`` |", "</details>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in:\n%.2000s", want, got)
		}
	}
	if strings.Contains(got, "\n| x") {
		t.Error("a name ends a row of the table")
	}
}

// What people read goes before generated manifests, and is shown although they alone would fill the comment.
func TestMarkdownShowsGeneratedObjectsLast(t *testing.T) {
	from := func(file, diff string) ObjectChange {
		return ObjectChange{Diff: "--- a/x\n+++ b/x\n" + diff, File: file}
	}
	r := &Report{Objects: []ObjectChange{
		from("providers/aws/v1/mgmt/flux-system/gotk-components.yaml", "+crd: 1\n"),
		from("addons/cni/cilium/cilium.yaml", strings.Repeat("+long: 1\n", 4000)),
		from("addons/cni/cilium/cilium.yaml", strings.Repeat("+long: 2\n", 4000)),
		from("addons/cni/small/small.yaml", "+small: 1\n"),
		{Diff: "--- a/y\n+++ /dev/null\n-gone: 1\n", File: "a.yaml"},
	}}
	got := r.Markdown()
	last := 0
	for _, want := range []string{"+small: 1", "-gone: 1", "+crd: 1", "+long: 1", "1 more object not shown"} {
		at := strings.Index(got, want)
		if at <= last {
			t.Errorf("%q is at %d, and what goes before it at %d", want, at, last)
		}
		last = at
	}
}

// Whoever is reviewed chooses the names: none makes the comment longer than a forge takes, which would be no comment at all.
func TestMarkdownOfLongNames(t *testing.T) {
	for name, text := range map[string]string{
		"a long name":    strings.Repeat("a", 1<<20),
		"hidden letters": strings.Repeat("\u202e\x00", 1<<10),
		"bars":           strings.Repeat("|`", 1<<10),
	} {
		r := &Report{}
		for range 200 {
			r.Impact = append(r.Impact, Impact{Kind: ImpactDeleteCluster, Environment: text, Summary: "deletes " + text, Cluster: text})
			r.Problems = append(r.Problems, diag.Finding{File: text, Summary: text, Hint: text})
			r.Objects = append(r.Objects, ObjectChange{Diff: text})
		}
		got := r.Markdown()
		if len(got) > maxComment+1000 {
			t.Errorf("%s: %d bytes are too many", name, len(got))
		}
		for _, want := range []string{"| :red_circle: |", "| and 1", "\n- ", "- and 1", "200 problems", "</details>"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %q in %.1000s", name, want, got)
			}
		}
	}
}

// Objects that several clusters share are compared cluster by cluster, and a Secret is not shown.
func TestCompareTargets(t *testing.T) {
	before := []*render.Object{object("ConfigMap", "apps", "x", "", "a", "b"), object("Secret", "apps", "s", "a")}
	changed := object("ConfigMap", "apps", "x", "", "b", "c")
	changed.JSON = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"apps"},"data":{"k":"v"}}`)
	secret := object("Secret", "apps", "s", "a")
	secret.JSON = []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"apps"},"stringData":{"password":"hunter2"}}`)
	var got []string
	for _, c := range compare(before, []*render.Object{changed, secret}, stayNot) {
		got = append(got, fmt.Sprintf("%s %s %s/%s %v", c.Action, c.Kind, c.Namespace, c.Name, c.Targets))
		if strings.Contains(c.Diff, "hunter2") {
			t.Errorf("a Secret is shown:\n%s", c.Diff)
		}
	}
	want := "change ConfigMap apps/x [b]; add ConfigMap apps/x [c]; change Secret apps/s []; remove ConfigMap apps/x [a]"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}

// Objects that would share a path get two paths, in any order. Names that file systems refuse are changed.
func TestTree(t *testing.T) {
	objects := []*render.Object{
		object("ConfigMap", "apps", "x", "", "a"), object("ConfigMap", "apps", "x", "", "b"), object("ClusterRole", "", "system:x", ""),
	}
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := WriteDir(dir, objects); err != nil {
		t.Fatal(err)
	}
	first := listing(t, dir)
	if len(first) != 3 || first["mgmt/dev/clusterrole-system_x.yaml"] == "" {
		t.Errorf("got %v", first)
	}
	written, err := WriteDir(dir, []*render.Object{objects[2], objects[1], objects[0]})
	if err != nil || written.Changed != 0 || written.Removed != 0 {
		t.Errorf("in another order: got %+v, %v", written, err)
	}
	if written, err = WriteDir(dir, nil); err != nil || written.Removed != 3 || len(listing(t, dir)) != 0 {
		t.Errorf("nothing: got %+v, %v", written, err)
	}
}

func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == listFile {
			return err
		}
		content, err := os.ReadFile(name)
		relative, _ := filepath.Rel(dir, name)
		files[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is applied to clusters that come is said with them; what others get as well is counted.
func TestImpactOfTargets(t *testing.T) {
	cluster := object("Cluster", "new", "new", "new")
	cluster.APIVersion = "cluster.x-k8s.io/v1beta2"
	after := []*render.Object{
		cluster, object("Deployment", "flux-system", "flux", "", "new"),
		object("ConfigMap", "apps", "x", "", "new", "old"),
	}
	before := []*render.Object{object("Deployment", "flux-system", "flux", "", "old"), object("ConfigMap", "apps", "gone", "", "old")}
	after = append(after, before[0])
	var got []string
	for _, i := range impactOf(compare(before, after, stayNot), before, after, nil) {
		got = append(got, i.Summary)
	}
	want := "adds cluster dev/new (0 machines); takes 1 other object of dev out of the repo: 1 ConfigMap; adds 1 other object of dev: 1 " +
		"ConfigMap"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}
