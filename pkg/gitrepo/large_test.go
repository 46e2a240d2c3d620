package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// git fetches a file of any size. fleetctl refuses to read one that is larger than any that it fetches itself, by its name, and before it
// has read it into memory.
func TestLargeFiles(t *testing.T) {
	const most, size = 1 << 20, 16 << 20
	SetShelf(t, most, 512<<20)
	for _, tc := range []struct {
		name string
		pack []string
	}{
		{name: "loose"},
		{name: "packed", pack: []string{"repack", "-a", "-d", "--quiet"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
			gittest.Git(t, dir, "config", "user.name", "a")
			gittest.Git(t, dir, "config", "user.email", "a@localhost")
			for name, bytes := range map[string]int64{"large.yaml": size, "at-the-limit": most} {
				file := filepath.Join(dir, name)
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, bytes); err != nil {
					t.Fatal(err)
				}
			}
			gittest.Git(t, dir, "add", "--all")
			gittest.Git(t, dir, "commit", "--quiet", "--message", "large")
			if tc.pack != nil {
				gittest.Git(t, dir, tc.pack...)
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			head, err := r.Head()
			if err != nil {
				t.Fatal(err)
			}
			files, err := r.Files(head)
			if err != nil {
				t.Fatal(err)
			}
			if content, err := fs.ReadFile(files, "at-the-limit"); err != nil || len(content) != most {
				t.Errorf("a file at the limit: %d bytes, %v", len(content), err)
			}
			if info, err := fs.Stat(files, "large.yaml"); err != nil || info.Size() != size {
				t.Errorf("%v, %v", info, err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			content, err := fs.ReadFile(files, "large.yaml")
			runtime.ReadMemStats(&after)
			if !errors.Is(err, within.ErrTooLarge) || !strings.Contains(err.Error(), "large.yaml: ") || diag.Hint(err) == "" {
				t.Errorf("%d bytes, error %v with the hint %q", len(content), err, diag.Hint(err))
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
				t.Errorf("%d MiB were allocated for it", took>>20)
			}
			by := Author{Name: "a", Email: "a@localhost"}
			_, _, err = r.Commit(context.Background(), []Change{{Path: "large.yaml", Content: []byte("small\n")}}, "Replace it", by)
			if !errors.Is(err, within.ErrTooLarge) || !strings.Contains(err.Error(), "large.yaml") {
				t.Errorf("its replacement: %v", err)
			}
			_, _, err = r.Commit(context.Background(), []Change{{Path: "other.yaml", Content: []byte("small\n")}}, "Add another", by)
			if err != nil {
				t.Errorf("another file: %v", err)
			}
		})
	}
}

// A list of references is read whole where it is changed.
func TestLargeReferences(t *testing.T) {
	SetBounds(t, Bounds{Refs: 1 << 20, Pack: maxPack, Places: maxPlaces})
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
	gittest.Git(t, dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--allow-empty", "--message", "empty")
	gittest.Git(t, dir, "pack-refs", "--all")
	packed := filepath.Join(dir, ".git", "packed-refs")
	content, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	large := string(content) + strings.Repeat(strings.Repeat("a", 40)+" refs/tags/"+strings.Repeat("b", 100)+"\n", 1<<13)
	if err := os.WriteFile(packed, []byte(large), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.disk.OpenFile("packed-refs", os.O_RDWR, 0o644)
	if err == nil {
		err = errors.New("it was opened")
		_ = f.Close()
	}
	if !errors.Is(err, within.ErrTooLarge) || !strings.Contains(err.Error(), packed) {
		t.Error(err)
	}
	if _, err := os.Stat(packed + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("git's lock stays: %v", err)
	}
}
