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

// A commit that made a file executable is reverted as well, and one that changed links or submodules is left to Git.
func TestRevertOfModesAndLinks(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		cmd := exec.CommandContext(t.Context(), "git", args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	files := map[string]string{
		"fleet.yaml": "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n",
		"hook":       "#!/bin/sh\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-qm", "start")
	git("update-index", "--chmod=+x", "hook")
	git("commit", "-qm", "executable")
	git("reset", "-q", "--hard")
	r, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Revert(t.Context(), "HEAD")(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "hook")); err != nil || info.Mode().Perm()&0o111 != 0 {
		t.Errorf("the file is still executable: %v, %v", info.Mode(), err)
	}
	git("reset", "-q", "--hard")
	if err := os.Symlink("hook", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	git("add", "-A")
	git("commit", "-qm", "a link")
	git("update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,sub")
	git("commit", "-qm", "a submodule")
	for revision, name := range map[string]string{"HEAD": "sub", "HEAD~1": "link"} {
		_, err := Revert(t.Context(), revision)(r)
		if err == nil || !strings.Contains(err.Error(), name+": it is a link or a submodule") {
			t.Errorf("%s: got %v", revision, err)
		}
	}
}
