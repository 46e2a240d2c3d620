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

func hook(t *testing.T, dir, name, script string) {
	t.Helper()
	write(t, dir, name, "#!/bin/sh\n"+script)
	if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func started(t *testing.T) *gitrepo.Repo {
	t.Helper()
	sandbox(t, tess)
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "a.yaml", "a: 1\nb: 2\n\nc: 3\n")
	write(t, dir, "theirs", "1\n")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "first")
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

var edited = gitrepo.Change{Path: "a.yaml", Content: []byte("a: one\nb: 2\n\nc: 3\n")}

// Hooks run as git runs them: with the same folder, variables and arguments, an index with only the change, and the change on disk.
func TestHooksRunAsGitRunsThem(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	log := filepath.Join(t.TempDir(), "log")
	report := `{ echo "$(basename "$0") $*"; pwd; echo "$GIT_AUTHOR_NAME $GIT_AUTHOR_EMAIL $GIT_EDITOR ${GIT_DIR-none} ${FLEETCTL_GIT_TOKEN-none}"
git diff --cached --name-only; git show :a.yaml; cat a.yaml; cat; } >>` + log + "\n"
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"} {
		hook(t, dir, ".git/hooks/"+name, report)
	}
	t.Setenv("FLEETCTL_GIT_TOKEN", "secret")
	write(t, dir, "theirs", "2\n")
	run(t, dir, "add", "theirs")
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "change", gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	ours := read(t, filepath.Dir(log), "log")
	run(t, dir, "reset", "-q", "--soft", "HEAD~1")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "commit", "-q", "-m", "change", "--", "a.yaml")
	// Hooks must not get fleetctl's credentials.
	want := strings.ReplaceAll(read(t, filepath.Dir(log), "log"), "none secret", strings.Repeat(" none", 2)[1:])
	if ours != want {
		t.Errorf("hooks have seen\n%s\nfrom git\n%s", ours, want)
	}
	if out := run(t, dir, "status", "--porcelain"); out != "M  theirs\n" {
		t.Errorf("status %q", out)
	}
}

// The hook reference-transaction runs for a commit and for a tag as with git: before and after the move, for HEAD and the branch, with the
// same values.
func TestReferencesMoveAsGitMovesThem(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	log := filepath.Join(t.TempDir(), "log")
	hook(t, dir, ".git/hooks/reference-transaction", `{ echo "$*"; pwd; cat; } >>`+log+"\n")
	heard := func(ref string) string {
		text := strings.ReplaceAll(read(t, filepath.Dir(log), "log"), strings.TrimSpace(run(t, dir, "rev-parse", ref)), "new")
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "change", gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	commit := heard("HEAD")
	if _, err := repo.Tag(t.Context(), "v1", "HEAD", "first"); err != nil {
		t.Fatal(err)
	}
	tag := heard("v1")
	run(t, dir, "tag", "--delete", "v1")
	run(t, dir, "reset", "-q", "--soft", "HEAD~1")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "commit", "-q", "-m", "change", "--", "a.yaml")
	if want := heard("HEAD"); commit != want {
		t.Errorf("of a commit the hook hears\n%s\nfrom git\n%s", commit, want)
	}
	run(t, dir, "tag", "--annotate", "-m", "first", "v1")
	if want := heard("v1"); tag != want {
		t.Errorf("of a tag the hook hears\n%s\nfrom git\n%s", tag, want)
	}
}

// A hook that refuses leaves everything as it was, and the error quotes the hook. --no-verify skips the hook, as in git.
func TestHookRefuses(t *testing.T) {
	for name, noVerify := range map[string]bool{
		"pre-commit": true, "commit-msg": true, "prepare-commit-msg": false, "reference-transaction": false,
	} {
		t.Run(name, func(t *testing.T) {
			repo := started(t)
			dir := repo.Dir()
			run(t, dir, "config", "core.hooksPath", "my hooks")
			write(t, dir, ".git/info/exclude", "my hooks\n")
			hook(t, dir, "my hooks/"+name, "echo 'not on Fridays'; echo really >&2; exit 3\n")
			write(t, dir, "a.yaml", "a: 1\nb: 2\n\nc: mine\n")
			change := []gitrepo.Change{edited, {Path: "new/file", Content: []byte("new\n")}, {Path: "theirs", Delete: true}}
			head := run(t, dir, "rev-parse", "HEAD")
			_, _, err := repo.Commit(t.Context(), change, "change", gitrepo.Author{})
			if !errors.Is(err, gitrepo.ErrHook) || !strings.Contains(err.Error(), name) ||
				!strings.Contains(err.Error(), "not on Fridays; really") || !strings.Contains(diag.Hint(err), "--no-verify") {
				t.Errorf("error %v, hint %q", err, diag.Hint(err))
			}
			if run(t, dir, "rev-parse", "HEAD") != head || run(t, dir, "status", "--porcelain") != " M a.yaml\n" ||
				read(t, dir, "a.yaml") != "a: 1\nb: 2\n\nc: mine\n" {
				t.Errorf("status %q, a.yaml %q", run(t, dir, "status", "--porcelain"), read(t, dir, "a.yaml"))
			}
			whole(t, dir)
			repo.NoVerify = true
			if _, made, err := repo.Commit(t.Context(), change, "change", gitrepo.Author{}); made != noVerify ||
				errors.Is(err, gitrepo.ErrHook) == noVerify {
				t.Errorf("without verification: %v, %v", made, err)
			}
		})
	}
}

// The commit has the changes of its hooks: their message, and the files that they add. An empty message is an error.
func TestHooksChangeTheCommit(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	hook(t, dir, ".git/hooks/pre-commit", "sed -i s/one/ONE/ a.yaml; echo made >made; git add a.yaml made\n")
	hook(t, dir, ".git/hooks/commit-msg", `printf '\n\n%s  \n\n\nTicket: 7\n\n' "$(cat "$1")" >"$1"`+"\n")
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "change\n", gitrepo.Author{}); err != nil {
		t.Fatal(err)
	}
	if out := run(t, dir, "log", "-1", "--format=%B", "--name-only"); out != "change\n\nTicket: 7\n\n\na.yaml\nmade\n" {
		t.Errorf("commit %q", out)
	}
	if read(t, dir, "a.yaml") != "a: ONE\nb: 2\n\nc: 3\n" || run(t, dir, "status", "--porcelain") != "" {
		t.Errorf("a.yaml %q, status %q", read(t, dir, "a.yaml"), run(t, dir, "status", "--porcelain"))
	}
	hook(t, dir, ".git/hooks/commit-msg", `: >"$1"`+"\n")
	if _, made, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "x", Content: []byte("1\n")}}, "change",
		gitrepo.Author{}); !errors.Is(err, gitrepo.ErrHook) || made {
		t.Errorf("an empty message: %v, %v", made, err)
	}
	whole(t, dir)
}

// The hook pre-push gets the pushed references, and may refuse the push. For a proposal the hooks of a commit run too, and the working tree
// stays as it is.
func TestHooksOfAPush(t *testing.T) {
	remote := gittest.NewRepo(t, gittest.Options{})
	remote.Seed(t, "main", map[string]string{"a.yaml": "a: 1\n"})
	sandbox(t, tess)
	dir := filepath.Join(t.TempDir(), "clone")
	run(t, filepath.Dir(dir), "clone", "-q", "-b", "main", remote.Dir, dir)
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a.yaml": "a: 1\n"})
	repo := clone(t, server.URL, tokenAuth(server))
	dir = repo.Dir()
	log := filepath.Join(t.TempDir(), "log")
	hook(t, dir, ".git/hooks/pre-push", `echo "$1 $2 $(cat)" >>`+log+"\n")
	hook(t, dir, ".git/hooks/pre-commit", `git show :a.yaml >>`+log+"\n")
	before := run(t, dir, "rev-parse", "HEAD")
	change := put(gitrepo.Change{Path: "a.yaml", Content: []byte("a: 2\n")})
	proposed, err := repo.Propose(t.Context(), tokenAuth(server), "other", change, "x", gitrepo.Author{})
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Repeat("0", 40)
	want := "a: 2\norigin " + server.URL + " " + proposed.Commit + " " + proposed.Commit + " refs/heads/other " + none + "\n"
	if read(t, dir, "a.yaml") != "a: 1\n" || run(t, dir, "status", "--porcelain") != "" {
		t.Errorf("a proposal has changed the working tree: %q", read(t, dir, "a.yaml"))
	}
	done, err := repo.Sync(t.Context(), tokenAuth(server), change, "x", gitrepo.Author{})
	if err != nil {
		t.Fatal(err)
	}
	want += "a: 2\norigin " + server.URL + " refs/heads/main " + done.Commit + " refs/heads/main " + before
	if got := read(t, filepath.Dir(log), "log"); got != want {
		t.Errorf("hooks have seen\n%s\nwant\n%s", got, want)
	}
	hook(t, dir, ".git/hooks/pre-push", "echo too late; exit 1\n")
	at := server.Head(t, "main")
	change = put(gitrepo.Change{Path: "a.yaml", Content: []byte("a: 3\n")})
	if _, err := repo.Sync(t.Context(), tokenAuth(server), change, "x",
		gitrepo.Author{}); !errors.Is(err, gitrepo.ErrHook) || server.Head(t, "main") != at || read(t, dir, "a.yaml") != "a: 2\n" {
		t.Errorf("error %v", err)
	}
	repo.NoVerify = true
	if _, err := repo.Sync(t.Context(), tokenAuth(server), change, "x", gitrepo.Author{}); err != nil || server.Head(t, "main") == at {
		t.Errorf("without verification: %v", err)
	}
}

// The next command undoes the changes of a killed command in the working tree. It keeps a person's edits in the same file, also those made
// after the kill.
func TestRecover(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	mine := "a: 1\nb: 2\n\nc: mine\n"
	write(t, dir, "a.yaml", mine)
	kept := t.TempDir()
	hook(t, dir, ".git/hooks/pre-commit", "cp .git/fleetctl.undo a.yaml new "+kept+"; exit 1\n")
	change := []gitrepo.Change{edited, {Path: "new", Content: []byte("new\n")}, {Path: "theirs", Delete: true}}
	if _, _, err := repo.Commit(t.Context(), change, "x", gitrepo.Author{}); !errors.Is(err, gitrepo.ErrHook) {
		t.Fatal(err)
	}
	killed := func() { // in the middle of the hook
		write(t, dir, ".git/fleetctl.undo", read(t, kept, "fleetctl.undo"))
		write(t, dir, "a.yaml", read(t, kept, "a.yaml"))
		write(t, dir, "new", read(t, kept, "new"))
		if err := os.Remove(filepath.Join(dir, "theirs")); err != nil {
			t.Fatal(err)
		}
	}
	killed()
	if read(t, dir, "a.yaml") != "a: one\nb: 2\n\nc: mine\n" {
		t.Fatalf("a.yaml was %q: the rest proves nothing", read(t, dir, "a.yaml"))
	}
	for range 2 {
		if err := repo.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if read(t, dir, "a.yaml") != mine || run(t, dir, "status", "--porcelain") != " M a.yaml\n" {
			t.Errorf("a.yaml %q, status %q", read(t, dir, "a.yaml"), run(t, dir, "status", "--porcelain"))
		}
	}
	killed()
	write(t, dir, "new", "new\nand mine\n")
	if err := os.Remove(filepath.Join(dir, ".git/hooks/pre-commit")); err != nil {
		t.Fatal(err)
	}
	if _, made, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "x", gitrepo.Author{}); err != nil || !made {
		t.Fatal(made, err)
	}
	if read(t, dir, "new") != "new\nand mine\n" || run(t, dir, "status", "--porcelain") != " M a.yaml\n?? new\n" {
		t.Errorf("new %q, status %q", read(t, dir, "new"), run(t, dir, "status", "--porcelain"))
	}
	whole(t, dir)
}

// During a rebase HEAD is detached, and git cannot switch to a branch. The hint says what to do.
func TestHintInARebase(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	run(t, dir, "switch", "-q", "-c", "other")
	write(t, dir, "theirs", "other\n")
	run(t, dir, "commit", "-q", "-a", "-m", "other")
	run(t, dir, "switch", "-q", "main")
	write(t, dir, "theirs", "main\n")
	run(t, dir, "commit", "-q", "-a", "-m", "main")
	if _, err := try(t, dir, "rebase", "other"); err == nil {
		t.Fatal("the rebase met no conflict")
	}
	_, _, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "change", gitrepo.Author{})
	if !errors.Is(err, gitrepo.ErrDetached) || !strings.Contains(diag.Hint(err), "git rebase --abort") {
		t.Errorf("the error is %v, hint %q", err, diag.Hint(err))
	}
}

// During a bisection git cannot switch to a branch either.
func TestHintInABisection(t *testing.T) {
	repo := started(t)
	dir := repo.Dir()
	for range 3 {
		run(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
	}
	run(t, dir, "bisect", "start", "HEAD", "HEAD~3")
	_, _, err := repo.Commit(t.Context(), []gitrepo.Change{edited}, "change", gitrepo.Author{})
	if !errors.Is(err, gitrepo.ErrDetached) || !strings.Contains(diag.Hint(err), "git bisect reset") {
		t.Errorf("the error is %v, hint %q", err, diag.Hint(err))
	}
}
