package render_test

import (
	"testing"

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

func text(res *render.Result) string {
	var out []byte
	for _, o := range res.Objects {
		out = append(append(out, "---\n"...), o.YAML()...)
	}
	return string(out)
}

// A fleet renders to the same bytes each time, with a cache that is empty, full, or not there.
func TestDeterministic(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	if err := rendertest.Write(dir, 20); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, cache := range []string{"", cache, cache} {
		res, err := renderer(t, dir, cache).All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res.Findings != nil {
			t.Fatal(res.Findings)
		}
		if first == "" {
			first = text(res)
		}
		if text(res) != first || first == "" {
			t.Error("the second time it is something else")
		}
	}
}
