package gitrepo_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A file that is too large to be read again is not put into a branch: the branch's other files would become unreadable too.
func TestShelfKeepsWhatItCanRead(t *testing.T) {
	gitrepo.SetShelf(t, 1<<20, 3<<20)
	server := gittest.NewSSH(t, gittest.Options{})
	shelf, err := gitrepo.NewShelf(server.URL, "snapshots", sshAuth(t, server, false))
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 2<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	names := []string{"a.20261123T120000Z-a", "a.20261123T120000Z-b", "a.20261123T120000Z-c"}
	if err := shelf.Write(t.Context(), names[0], noise); err == nil || !strings.Contains(err.Error(), "it has 2 MiB") || diag.Hint(err) == "" {
		t.Errorf("%v", err)
	}
	for i, name := range names {
		err := shelf.Write(t.Context(), name, noise[:900<<10-i])
		if full := i == 2; full != (err != nil) || full && !strings.Contains(err.Error(), "may have at most 3") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if there, err := shelf.Names(t.Context()); err != nil || len(there) != 2 {
		t.Errorf("%v, %v", there, err)
	}
	if content, err := shelf.Read(t.Context(), names[1], 1<<20); err != nil || len(content) != 900<<10-1 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// What an error about a branch of snapshots advises leaves the fleet's own branch alone.
func TestShelfAdvisesAboutItsBranch(t *testing.T) {
	server := gittest.NewSSH(t, gittest.Options{Protected: []string{"locked"}})
	server.Seed(t, "other", map[string]string{"README.md": "A person's file.\n"})
	for branch, want := range map[string]struct{ says, hint string }{
		"locked": {"protected branches", "spec.snapshots.to"},
		"other":  {`it has the file "README.md"`, "remove the file from it"},
	} {
		shelf, err := gitrepo.NewShelf(server.URL, branch, sshAuth(t, server, false))
		if err != nil {
			t.Fatal(err)
		}
		err = shelf.Write(t.Context(), "a.20261123T120000Z-a", []byte("snapshot"))
		if err == nil || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", branch, err)
		}
		if hint := diag.Hint(err); !strings.Contains(hint, want.hint) || strings.Contains(hint, "spec.git.branch") {
			t.Errorf("%s: it advises: %s", branch, hint)
		}
	}
}
