package gitrepo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// Every change begins with one of these, and git does not work in a folder of another user. The error says so once, and how to trust the
// folder.
func TestFolderOfAnotherUser(t *testing.T) {
	sandbox(t, tess)
	dir := setUp{}.make(t)
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1") // a variable of git, for tests
	for name, do := range map[string]func() error{
		"look": func() error {
			_, err := repo.Dirty(t.Context())
			return err
		},
		"copy": func() error {
			_, _, err := repo.Copy(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			if !errors.Is(err, gitrepo.ErrUntrusted) || strings.Count(err.Error(), gitrepo.ErrUntrusted.Error()) != 1 ||
				!strings.Contains(err.Error(), "belongs to another user") || strings.Contains(err.Error(), "exit status") ||
				!strings.Contains(diag.Hint(err), "safe.directory") {
				t.Errorf("error %v, hint %q", err, diag.Hint(err))
			}
		})
	}
}
