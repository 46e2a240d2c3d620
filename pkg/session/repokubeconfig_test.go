package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a fleet repo may have brought is what is in any of its working trees, by its path or by where its links lead; a path of its own
// making is always so.
func TestIsOfRepo(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	at := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"repo/fleet/own", "repo/top", "home/config", "elsewhere/file"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(at("repo"), "init", "-q")
	git(at("repo"), "add", "-A")
	git(at("repo"), "commit", "-qm", "x")
	git(at("repo"), "worktree", "add", "-q", at("linked"))
	for name, target := range map[string]string{
		"home/link": at("repo/top"), "repo/fleet/out": at("home/config"),
		"repo/fleet/endless": "/dev/zero",
	} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for named, want := range map[string]bool{
		"own": true, "../top": true, "../../home/config": true, "nothing": true,
		at("repo/fleet/own"): true, at("repo/top"): true, at("linked/top"): true, at("home/link"): true,
		at("repo/fleet/out"): true, // its name is the repo's
		at("home/config"):    false, at("elsewhere/file"): false, at("home/nothing"): false,
	} {
		if got := isOfRepo(at("repo/fleet"), named); got != want {
			t.Errorf("%s: %v", named, got)
		}
	}
	for name, want := range map[string]bool{
		"repo/fleet/own": true, "repo/top": true, "repo/fleet/out": false, "repo/fleet/endless": false, "home/config": false, "repo/fleet": false,
		"repo/nothing": false, "home/link": true,
	} {
		if got := isFileOf(at("repo/fleet"), at(name)); got != want {
			t.Errorf("file %s: %v", name, got)
		}
	}
}
