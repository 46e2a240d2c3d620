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
