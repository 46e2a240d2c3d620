package render_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// Each repo has its own cache folder, whatever path leads to the repo. Unused folders are removed.
func TestCacheFor(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link")
	for _, repo := range []string{a, b} {
		if err := os.Mkdir(repo, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(a, link); err != nil {
		t.Fatal(err)
	}
	ofA, ofB := render.CacheFor(cache, a), render.CacheFor(cache, b)
	if ofA == ofB || ofA == "" || ofB == "" {
		t.Errorf("two repos have %q and %q", ofA, ofB)
	}
	if again := render.CacheFor(cache, link); again != ofA {
		t.Errorf("through a link it is %q, not %q", again, ofA)
	}
	if none := render.CacheFor("", a); none != "" {
		t.Errorf("without a folder it is %q", none)
	}
	old := time.Now().Add(-40 * 24 * time.Hour)
	former := filepath.Join(cache, "render", "1234.pack")
	if err := os.WriteFile(former, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ofB, "1.pack"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(ofB, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(ofA, old, old); err != nil {
		t.Fatal(err)
	}
	if render.CacheFor(cache, a) != ofA {
		t.Error("the folder is another one")
	}
	for name, there := range map[string]bool{ofA: true, ofB: false, former: false} {
		if _, err := os.Stat(name); (err == nil) != there {
			t.Errorf("%s: %v, want it to be there: %v", name, err, there)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := render.CacheFor(filepath.Join(dir, "file"), a); got != "" {
		t.Errorf("below a file it is %q", got)
	}
}
