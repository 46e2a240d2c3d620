package gitrepo_test

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A clone that is behind has no commit that the remote lacks, also if the clock of the machine that made the newest commit is behind, or
// both commits are of the same second.
func TestNothingIsUnpushedInAClone(t *testing.T) {
	for name, date := range map[string]string{"the same second": "2026-01-02T03:04:05Z", "a clock behind": "2025-12-31T00:00:00Z"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
			server := gittest.NewHTTPS(t, gittest.Options{})
			server.Seed(t, "main", map[string]string{"a": "1"})
			repo := clone(t, server.URL, tokenAuth(server))
			t.Setenv("GIT_COMMITTER_DATE", date)
			server.Seed(t, "main", map[string]string{"a": "2"})
			if err := repo.CheckCatchUp(t.Context(), tokenAuth(server)); err != nil {
				t.Fatal(err)
			}
			if unpushed, err := repo.Unpushed(t.Context()); err != nil || len(unpushed) > 0 {
				t.Errorf("the remote lacks %q, %v", unpushed, err)
			}
		})
	}
}
