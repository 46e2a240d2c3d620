package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// crlfRepo is a fleet repo as Git for Windows checks it out: files have CRLF on disk, and LF in commits.
type crlfRepo struct{ dir string }

func newCRLFRepo(t *testing.T) crlfRepo {
	t.Helper()
	c := crlfRepo{t.TempDir()}
	c.git(t, "init", "-q", "-b", "main")
	c.git(t, "config", "core.autocrlf", "true")
	c.commit(t, "fleet.yaml",
		"apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: x\nspec:\n  managementClusters:\n  - name: m\n    providers:\n    "+
			"- name: docker\n")
	return c
}

func (c crlfRepo) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append(
		[]string{"-C", c.dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// commit commits a file with LF, and checks it out with CRLF.
func (c crlfRepo) commit(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(c.dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c.git(t, "add", "-A")
	c.git(t, "commit", "-qm", "change "+name)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.git(t, "checkout", "-q", "--", name)
	if got := c.read(t, name); got != strings.ReplaceAll(content, "\n", "\r\n") {
		t.Fatalf("%s is not checked out with CRLF: %q", name, got)
	}
}

func (c crlfRepo) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// No line was changed since, so there is no conflict. The file keeps its ends of lines.
func TestRevertWithCRLFOnDisk(t *testing.T) {
	c := newCRLFRepo(t)
	c.commit(t, "app.yaml", "a: 1\nb: 1\nc: 1\nd: 1\n")
	c.commit(t, "app.yaml", "a: 2\nb: 1\nc: 1\nd: 1\n")
	c.commit(t, "app.yaml", "a: 2\nb: 1\nc: 1\nd: 2\n")
	for _, step := range []struct{ revision, want string }{
		{"HEAD~1", "a: 1\nb: 1\nc: 1\nd: 2\n"}, // a later commit has changed another line
		{"HEAD", "a: 2\nb: 1\nc: 1\nd: 1\n"},
	} {
		r, err := fleetrepo.Open(c.dir)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Revert(t.Context(), step.revision)(r)
		if err != nil {
			t.Fatalf("%s: %v", step.revision, err)
		}
		if _, err := e.Changes.Apply(c.dir); err != nil {
			t.Fatal(err)
		}
		if got, want := c.read(t, "app.yaml"), strings.ReplaceAll(step.want, "\n", "\r\n"); got != want {
			t.Errorf("%s: got %q, want %q", step.revision, got, want)
		}
		c.git(t, "checkout", "-q", "--", ".")
	}
	r, err := fleetrepo.Open(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Revert(t.Context(), "HEAD~2")(r) // it added the file, which others have changed since
	if err == nil || !strings.Contains(err.Error(), "later commits have changed the same lines") {
		t.Errorf("got %+v, %v", e, err)
	}
}

// A step that is pushed has reached the remote, whatever Git makes of the file on disk.
func TestStepIsReachedWithCRLFOnDisk(t *testing.T) {
	c := newCRLFRepo(t)
	c.git(t, "remote", "add", "origin", "https://git.example.com/acme/fleet.git")
	c.commit(t, "cluster.yaml", "a: 1\n")
	c.git(t, "update-ref", "refs/remotes/origin/main", "HEAD")
	c.git(t, "tag", "v1")
	step := fleetrepo.FollowsStep{File: "cluster.yaml", Remote: true, Tag: "v1"}
	if err := checkFollows(t.Context(), c.dir, step); err != nil {
		t.Errorf("it is pushed and promoted: %v", err)
	}
	c.commit(t, "cluster.yaml", "a: 2\n")
	if err := checkFollows(t.Context(), c.dir, step); err == nil || !strings.Contains(err.Error(), "is not pushed") {
		t.Errorf("it is not pushed: %v", err)
	}
	c.git(t, "update-ref", "refs/remotes/origin/main", "HEAD")
	if err := checkFollows(t.Context(), c.dir, step); err == nil || !strings.Contains(err.Error(), "is not promoted") {
		t.Errorf("it is not promoted: %v", err)
	}
}
