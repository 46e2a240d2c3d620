package render_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

// renderer opens the fleet repo in dir.
func renderer(t *testing.T, dir, cache string) *render.Renderer {
	t.Helper()
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := render.Dir(repo.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return render.New(files, repo.Fleet, render.Options{CacheDir: cache})
}

func text(res *render.Result) string { return textOf(res.Objects) }

func textOf(objects []*render.Object) string {
	var out []byte
	for _, o := range objects {
		out = append(append(out, "---\n# "+o.Source.File+" "+o.Template+"\n"...), o.YAML()...)
	}
	return string(out)
}

// Any fleet renders to the same bytes each time, with a cache that is empty, full, or not there; and an environment and a cluster render
// to their part of it.
func TestDeterministic(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed)) // the same fleets in each run
	for range 3 {
		dir, cache := t.TempDir(), t.TempDir()
		clusters := 1 + random.IntN(24)
		if err := rendertest.Write(dir, clusters); err != nil {
			t.Fatal(err)
		}
		for i := range clusters {
			if random.IntN(4) == 0 { // not every fleet has one of each
				if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(filepath.Dir(rendertest.File(i))))); err != nil {
					t.Fatal(err)
				}
			}
		}
		var all *render.Result
		for _, cache := range []string{"", cache, cache} {
			res, err := renderer(t, dir, cache).All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if res.Findings != nil {
				t.Fatal(res.Findings)
			}
			if all == nil {
				all = res
			}
			if diff := cmp.Diff(text(all), text(res)); diff != "" {
				t.Errorf("the second time it is something else: %s", diff)
			}
		}
		checkParts(t, renderer(t, dir, cache), all)
	}
}

// checkParts compares what an environment and a cluster render to with their objects among all.
func checkParts(t *testing.T, r *render.Renderer, all *render.Result) {
	t.Helper()
	environments, clusters := map[string][]*render.Object{}, map[string][]*render.Object{}
	for _, o := range all.Objects {
		if o.Environment != "" {
			environments[o.Environment] = append(environments[o.Environment], o)
		}
		if o.Cluster != "" {
			clusters[o.Environment+"/"+o.Cluster] = append(clusters[o.Environment+"/"+o.Cluster], o)
		}
	}
	for name, want := range environments {
		got, err := r.Environment(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(textOf(want), text(got)); diff != "" {
			t.Errorf("environment %s: %s", name, diff)
		}
	}
	for name, want := range clusters {
		got, err := r.Cluster(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(textOf(want), text(got)); diff != "" {
			t.Errorf("cluster %s: %s", name, diff)
		}
	}
}
