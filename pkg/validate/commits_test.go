package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// With a convention, each commit since the revision that does not follow it is named, but merges, and those before the revision, are not.
func TestCommitSubjects(t *testing.T) {
	files := rawRepo()
	const fleetYAML = "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: acme}\nspec:\n" +
		"  git: {url: https://git.example.com/acme/fleet}\n  managementClusters: [{name: mgmt}]\n"
	for _, convention := range []string{"", "  releases: {commits: conventional}\n"} {
		files["fleet.yaml"] = fleetYAML + convention
		dir := write(t, files)
		git := func(args ...string) string { return strings.TrimSpace(gittest.Git(t, dir, args...)) }
		git("init", "-q", "-b", "main")
		git("add", "-A")
		git("commit", "-qm", "Before")
		git("tag", "before")
		git("switch", "-qc", "side")
		git("commit", "-q", "--allow-empty", "-m", "feat(pools): Add one")
		git("switch", "-q", "main")
		git("commit", "-q", "--allow-empty", "-m", "fix!: Mend it")
		git("commit", "-q", "--allow-empty", "-m", "Change it")
		wrong := git("rev-parse", "HEAD")
		git("merge", "-q", "--no-ff", "-m", "Merge it", "side")

		for _, since := range []string{"", "before"} {
			result, err := Run(t.Context(), Options{
				Dir: dir, known: knownKinds(t), Offline: true, CacheDir: t.TempDir(), CommitsSince: since,
			})
			if err != nil {
				t.Fatal(err)
			}
			found := ofRule(result.Findings, RuleCommit)
			if convention == "" || since == "" {
				if len(found) > 0 {
					t.Errorf("convention %q, since %q: %v", convention, since, found)
				}
				continue
			}
			if len(found) != 1 || !strings.Contains(found[0].Summary, wrong[:8]) || !strings.Contains(found[0].Summary, `"Change it"`) {
				t.Errorf("findings: %v", found)
			}
		}
	}
}
