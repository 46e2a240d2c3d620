package fleetrepo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// No edit loses a comment, except on removed lines. An addition that is removed again leaves the file as it was.
func TestEditsKeepComments(t *testing.T) {
	r := open(t)
	comments := func() map[string]int {
		found := map[string]int{}
		clusters, _, err := r.Clusters()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range clusters {
			for line := range strings.Lines(string(must(r.read(c.File)))) {
				if _, comment, ok := strings.Cut(line, "# "); ok {
					found[comment]++
				}
			}
		}
		return found
	}
	before := comments()
	originals := map[string]string{}
	for _, name := range r.Names() {
		c := must(r.Cluster(name))
		originals[c.File] = string(must(r.read(c.File)))
	}
	n := func(i int) *int { return &i }
	for _, name := range r.Names() {
		for _, edit := range []func() (*Edit, error){
			func() (*Edit, error) {
				return r.AddPool(name, "one", PoolOptions{Replicas: n(1), Values: sizeFor(name)})
			},
			func() (*Edit, error) {
				return r.AddPool(name, "two", PoolOptions{Min: n(1), Max: n(2), Values: sizeFor(name)})
			},
			func() (*Edit, error) { return r.ScalePool(name, "one", PoolOptions{Min: n(3), Max: n(4)}) },
			func() (*Edit, error) { return r.RemovePool(name, "one") },
			func() (*Edit, error) { return r.RemovePool(name, "two") },
		} {
			e, err := edit()
			_, r = done(t, r, e, err)
			if diff := cmp.Diff(before, comments()); diff != "" {
				t.Fatalf("comments (-want +got)\n%s", diff)
			}
		}
	}
	for file, want := range originals {
		if diff := cmp.Diff(want, string(must(r.read(file)))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

func sizeFor(cluster string) map[string]any {
	if cluster == "shop" {
		return map[string]any{"size": "m7i.large"}
	}
	return nil
}
