//go:build unix

package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// If a named pipe is in the place of a file, an edit of this file is refused with its name, and does not hang.
func TestEditOfAPipe(t *testing.T) {
	sandbox(t, tess)
	dir := setUp{}.make(t)
	path := filepath.Join(dir, "top/x.yaml")
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if dirty, err := repo.Dirty(t.Context()); err != nil || !slices.Equal(dirty, []string{"top/x.yaml"}) {
		t.Errorf("dirty %q, error %v", dirty, err)
	}
	change := gitrepo.Change{Path: "top/x.yaml", Content: []byte(strings.Replace(body, "1: one", "1: ONE", 1))}
	_, _, err = repo.Commit(t.Context(), []gitrepo.Change{change}, "edit", gitrepo.Author{})
	if dirty, is := errors.AsType[*gitrepo.DirtyError](err); !is || !slices.Equal(dirty.Paths, []string{"top/x.yaml"}) {
		t.Errorf("error %v", err)
	}
	if out := run(t, dir, "log", "--format=%s"); out != "first\n" {
		t.Errorf("commits %q", out)
	}
}

// Who may read the folder of the objects may read the objects that a commit makes, and nobody may write them: as those that git makes.
func TestObjectsAreReadableAsGits(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o750, 0o700, 0o775} {
		sandbox(t, tess)
		dir := setUp{}.make(t)
		objects := filepath.Join(dir, ".git", "objects")
		if err := os.Chmod(objects, mode.Perm()); err != nil {
			t.Fatal(err)
		}
		began := objectsIn(t, objects)
		repo, err := gitrepo.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		change := gitrepo.Change{Path: "top/x.yaml", Content: []byte(strings.Replace(body, "1: one", "1: ONE", 1))}
		if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{change}, "edit", gitrepo.Author{}); err != nil {
			t.Fatal(err)
		}
		made := 0
		for name, is := range objectsIn(t, objects) {
			if _, old := began[name]; old {
				continue
			}
			made++
			if want := mode.Perm() & 0o444; is != want {
				t.Errorf("in a folder of mode %s %s has mode %s, not %s", mode, name, is, want)
			}
		}
		if made == 0 {
			t.Error("the commit made no object")
		}
	}
}

// Every user who may write to the repository may do so after a commit, too: into the folders that the commit made, and with fleetctl's own
// files. The folders have the mode of those that git makes with core.sharedRepository.
func TestSharedRepository(t *testing.T) {
	for _, shared := range []string{"umask", "group", "all", "0640"} {
		t.Run(shared, func(t *testing.T) {
			sandbox(t, tess)
			dir := setUp{}.make(t)
			run(t, dir, "init", "-q", "--shared="+shared)
			began := modesIn(t, dir)
			hook(t, dir, ".git/hooks/pre-commit", "cp -p .git/fleetctl.undo .git/seen.undo\n")
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			change := gitrepo.Change{Path: "top/x.yaml", Content: []byte(strings.Replace(body, "1: one", "1: ONE", 1))}
			if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{change}, "edit", gitrepo.Author{}); err != nil {
				t.Fatal(err)
			}
			folder := began["."]
			made, folders := map[string]bool{}, 0
			for name, is := range modesIn(t, dir) {
				_, old := began[name]
				switch {
				case strings.HasPrefix(name, "hooks/"), old && name != "index", strings.HasPrefix(name, "objects/") && !is.IsDir():
					continue
				case is.IsDir():
					folders++
					if is != folder {
						t.Errorf("the folder %s has mode %s, not %s", name, is, folder)
					}
				default:
					made[name] = true
					if want := folder.Perm() & 0o666; is != want {
						t.Errorf("%s has mode %s, not %s", name, is, want)
					}
				}
			}
			if folders == 0 || !made["index"] || !made["fleetctl.lock"] || !made["seen.undo"] {
				t.Errorf("the commit made %d folders, and %v", folders, made)
			}
		})
	}
}

// modesIn are the modes of what is in the .git folder of dir.
func modesIn(t *testing.T, dir string) map[string]os.FileMode {
	t.Helper()
	out, top := map[string]os.FileMode{}, filepath.Join(dir, ".git")
	err := filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		out[filepath.ToSlash(name)] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objectsIn are the files below the folder of the objects, with their modes.
func objectsIn(t *testing.T, objects string) map[string]os.FileMode {
	t.Helper()
	out := map[string]os.FileMode{}
	err := filepath.WalkDir(objects, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			out[name] = info.Mode().Perm()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
