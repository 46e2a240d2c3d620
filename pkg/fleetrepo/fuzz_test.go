package fleetrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// With any content of a cluster's file and any --set: an edit has its intended effect, or is an error. After something is added and removed
// again, every byte is as before.
func FuzzEdits(f *testing.F) {
	r := open(f)
	var place string
	for _, name := range r.Names() {
		c := must(r.Cluster(name))
		f.Add(must(r.read(c.File)), "labels.team=shop")
		if name == "demo" {
			place = filepath.Join(r.Dir, filepath.FromSlash(c.File))
		}
	}
	short := "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo}\nspec:\n  chart: {spec: {chart: " +
		"./charts/in-memory}}\n  values:\n"
	for _, values := range []string{
		"    pools: [{name: a, min: 1, max: 2}, {name: b, replicas: 1}] # two\n",
		"    pools:\n    - &a {name: a, replicas: 1}\n    - <<: *a\n      name: b\n",
		"    pools: {name: a}\n", "    pools: &p []\n    others: *p\n", "    pools: []\n---\na: b\n",
		"    kubernetesVersion: v1.35.2\n    # none yet\n",
	} {
		f.Add([]byte(short+values), "labels={a: b}")
	}
	f.Add([]byte("kind: HelmRelease\n"), "a[0].b='1'")
	f.Fuzz(func(t *testing.T, src []byte, assignment string) {
		if err := os.WriteFile(place, src, 0o600); err != nil {
			t.Fatal(err)
		}
		size := 7
		options := PoolOptions{Replicas: &size, Values: assigned(t, assignment)}
		before, err := r.find("demo")
		if err != nil {
			return
		}
		for i, pool := range before.Pools {
			if e, err := r.ScalePool("demo", pool.Name, PoolOptions{Replicas: &size}); err == nil {
				if after := edited(t, r, e, before); i == before.pool(pool.Name) &&
					(*after.Pools[i].Replicas != size || after.Pools[i].Name != pool.Name) {
					t.Errorf("pool %s is %+v", pool.Name, after.Pools[i])
				}
			}
		}
		e, err := r.AddPool("demo", "added", options)
		if err != nil || before.pool("added") >= 0 {
			return
		}
		after := edited(t, r, e, before)
		if i := after.pool("added"); i != len(before.Pools) || *after.Pools[i].Replicas != size {
			t.Fatalf("pools %+v", after.Pools)
		}
		if err := os.WriteFile(place, after.src, 0o600); err != nil {
			t.Fatal(err)
		}
		if e, err = r.RemovePool("demo", "added"); err != nil {
			t.Fatal(err)
		}
		if again := edited(t, r, e, after); len(before.Pools) > 0 && string(again.src) != string(src) {
			t.Errorf("added and removed again it is %q instead of %q", again.src, src)
		}
	})
}

// assigned returns the assignments of a --set; nil if it is invalid.
func assigned(t *testing.T, assignment string) map[string]any {
	t.Helper()
	all, err := ParseAssignments([]string{assignment})
	if err != nil {
		return nil
	}
	if text := all[0].Path.String(); !strings.HasPrefix(assignment, text+"=") && !strings.Contains(assignment, "[") {
		t.Errorf("%q is for %s", assignment, text)
	}
	values, err := Assign(nil, all)
	if err != nil {
		return nil
	}
	var at any = values
	for _, step := range all[0].Path {
		switch step := step.(type) {
		case string:
			at = at.(map[string]any)[step]
		case int:
			at = at.([]any)[step]
		}
	}
	if fmt.Sprint(at) != fmt.Sprint(all[0].Value) {
		t.Errorf("%q gives %v", assignment, values)
	}
	return values
}

// edited returns the cluster's file after an edit.
func edited(t *testing.T, r *Repo, e *Edit, c *declared) *declared {
	t.Helper()
	for _, file := range e.Changes.Files() {
		if file.Path != c.File {
			continue
		}
		if _, err := yamledit.Parse(file.Content); err != nil {
			t.Fatal(err)
		}
		after, err := parseCluster(placeOf(c), file.Content)
		if err != nil || after == nil {
			t.Fatalf("%v in %q", err, file.Content)
		}
		return after
	}
	t.Fatal("the edit does not change the cluster's file")
	return nil
}

func placeOf(c *declared) place { return place{c.File, c.Environment, c.mgmt, c.at} }
