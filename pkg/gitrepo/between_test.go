package gitrepo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// Whoever reads the difference between two commits sees everything in which they differ: also modes, symbolic links, empty files and
// submodules. git makes the same commit of the difference.
func TestBetweenShowsAll(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string { return strings.TrimSpace(gittest.Git(t, dir, args...)) }
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet", "--initial-branch=main")
	for _, name := range []string{"both", "content", "emptied", "gone", "mode"} {
		put(name, name+"\n")
	}
	put("was-empty", "")
	git("add", ".")
	git("commit", "--quiet", "--message=before")
	before := git("rev-parse", "HEAD")

	put("both", "new\n")
	put("content", "new\n")
	put("emptied", "")
	put("empty", "")
	put("script", "#!/bin/sh\n")
	git("rm", "--quiet", "gone", "was-empty")
	git("add", ".")
	git("update-index", "--chmod=+x", "both", "mode", "script")
	put("target", "content")
	git("update-index", "--add", "--cacheinfo", "120000,"+git("hash-object", "-w", "target")+",link")
	git("update-index", "--add", "--cacheinfo", "160000,"+before+",sub")
	git("commit", "--quiet", "--message=after")
	after := git("rev-parse", "HEAD")

	r, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := r.Between(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	var diff strings.Builder
	for _, c := range changes {
		diff.WriteString(c.Diff())
	}
	patch := filepath.Join(t.TempDir(), "patch")
	if err := os.WriteFile(patch, []byte(diff.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	git("read-tree", before)
	git("apply", "--cached", patch)
	if got, want := git("write-tree"), git("rev-parse", after+"^{tree}"); got != want {
		t.Errorf("the difference lacks something:\n%s\nleft:\n%s", diff.String(), git("diff", "--cached", after))
	}
}

// The error about a commit that a damaged clone lacks names the commit, and says what to do.
func TestMissingCommit(t *testing.T) {
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	gittest.Git(t, dir, "commit", "--quiet", "--allow-empty", "--message=first")
	head := strings.TrimSpace(gittest.Git(t, dir, "rev-parse", "HEAD"))
	r, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ".git", "objects", head[:2], head[2:])); err != nil {
		t.Fatal(err)
	}
	_, _, copied := r.Copy(t.Context())
	_, read := r.Files(head)
	_, compared := r.Between(t.Context(), "", head)
	for what, err := range map[string]error{"copy": copied, "read": read, "compare": compared} {
		if !errors.Is(err, gitrepo.ErrNotHere) || strings.Count(err.Error(), "read commit "+head) != 1 || diag.Hint(err) == "" {
			t.Errorf("%s: %v (%s)", what, err, diag.Hint(err))
		}
	}
}
