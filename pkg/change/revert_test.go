package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// An edit that is made again, because somebody has pushed meanwhile, takes back the same commit.
func TestRevertMeansTheSameCommitAgain(t *testing.T) {
	dir := t.TempDir()
	commit := func(message, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-qm", message}} {
			cmd := exec.CommandContext(t.Context(), "git", append(
				[]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
	}
	commit("start", "fleet.yaml",
		"apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n    providers:\n    "+
			"- name: docker\n")
	commit("ours", "ours", "1\n")
	r, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	edit := Revert(t.Context(), "HEAD")
	for _, when := range []string{"at first", "again"} {
		e, err := edit(r)
		if err != nil || !strings.Contains(e.Summary, `"ours"`) {
			t.Fatalf("%s: %+v, %v", when, e, err)
		}
		commit("theirs", "theirs", when)
	}
}
