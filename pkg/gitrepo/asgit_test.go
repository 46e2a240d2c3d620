package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// setUp describes how a repository is set up before the test edits a line in the file top/x.yaml.
type setUp struct {
	config string // of the user
	// files of the first commit. It also has top/x.yaml with a default content.
	files map[string]string
	// before runs before the first commit, and after runs after it, in the edited repository and in its twin.
	before, after func(t *testing.T, dir string)
	// in returns the folder in which the file is edited, for a case with another working tree, such as a linked one.
	in func(t *testing.T, dir string) string
	// path of the edited file, if it is not top/x.yaml.
	path string
	// refused says that the edit fails with an error that names the file, and changes nothing.
	refused bool
	// message of the commit, for cases about messages.
	message string
	// staged says that the index has other changes too, which the commit leaves out.
	staged bool
}

func (s setUp) file() string {
	if s.path != "" {
		return s.path
	}
	return "top/x.yaml"
}

func git(args ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		run(t, dir, args...)
	}
}

func all(steps ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		for _, step := range steps {
			step(t, dir)
		}
	}
}

func file(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		write(t, dir, name, content)
	}
}

func program(name, script string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		hook(t, dir, name, script)
	}
}

const body = "1: one\n2: two\n3: 3\n4: four\n5: five\n"

// setUps are the setups of all subjects. No two have the same name.
func setUps(t *testing.T) map[string]setUp {
	t.Helper()
	all := map[string]setUp{}
	for _, subject := range []map[string]setUp{contentSetUps, indexSetUps, hookSetUps, treeSetUps} {
		for name, s := range subject {
			if _, twice := all[name]; twice {
				t.Fatalf("two setups are named %q", name)
			}
			all[name] = s
		}
	}
	return all
}

// In every setup, an edit by fleetctl has the same result as the same edit by hand and `git commit`: the same commit, index, working tree
// and status.
func TestEditAsGitDoes(t *testing.T) {
	for name, s := range setUps(t) {
		t.Run(name, func(t *testing.T) {
			sandbox(t, tess+s.config)
			home := os.Getenv("HOME")
			write(t, home, "attributes", "*.yaml filter=upper\n")
			write(t, home, "more", "[user]\n\tname = More\n")
			write(t, home, "template", "from a template\n")
			hook(t, home, "hooks/pre-commit", "echo hooked >>top/x.yaml; git add top/x.yaml\n")
			dir, twin := s.make(t), s.make(t)
			if s.in != nil {
				dir, twin = s.in(t, dir), s.in(t, twin)
			}
			before := run(t, dir, "status", "--porcelain", "--ignored")
			head := run(t, dir, "rev-parse", "HEAD")
			edit := func(content string) string { return strings.Replace(content, "3: 3", "3: three", 1) }
			message := s.message
			if message == "" {
				message = "edit\n"
			}
			repo, err := gitrepo.Open(dir)
			if s.refused && err != nil {
				if diag.Hint(err) == "" {
					t.Errorf("%v, without a hint", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			root, remove, err := repo.Copy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			committed := edit(read(t, root, s.file()))
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: s.file(), Content: []byte(committed)}}, message, gitrepo.Author{})
			if s.refused {
				if err == nil || diag.Hint(err) == "" || run(t, dir, "rev-parse", "HEAD") != head ||
					run(t, dir, "status", "--porcelain", "--ignored") != before {
					t.Errorf("done, or not refused: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content := read(t, twin, s.file())
			if strings.HasPrefix(content, "\xff\xfe") {
				content = strings.Replace(content, utf16le("3: 3")[2:], utf16le("3: three")[2:], 1)
			}
			write(t, twin, s.file(), edit(content))
			if s.staged {
				run(t, twin, "commit", "-q", "-m", message, "--", s.file())
			} else {
				run(t, twin, "add", s.file())
				run(t, twin, "commit", "-q", "-m", message)
			}
			sameAsGit(t, dir, twin)
		})
	}
}

// make makes the repository.
func (s setUp) make(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fleet")
	run(t, filepath.Dir(dir), "init", "-q", "-b", "main", dir)
	write(t, dir, ".git/config", read(t, dir, ".git/config")+"[user]\n\temail = tess@example.com\n")
	write(t, dir, "top/x.yaml", body)
	write(t, dir, "top/y.yaml", body)
	for name, content := range s.files {
		write(t, dir, name, content)
	}
	if s.before != nil {
		s.before(t, dir)
	}
	run(t, dir, "-c", "core.safecrlf=false", "add", ".")
	run(t, dir, "commit", "-q", "--no-verify", "-m", "first")
	for _, name := range tracked(t, dir) { // let git write each file to disk again
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(t, dir, "checkout-index", "-f", "-a", "-u")
	if s.after != nil {
		s.after(t, dir)
	}
	return dir
}

// sameAsGit compares a repository with its twin, in which git itself has done the same.
func sameAsGit(t *testing.T, dir, twin string) {
	t.Helper()
	stat := func(d string, args ...string) string { // plumbing commands, which do not read the files again
		out, err := try(t, d, args...)
		if err != nil {
			out += err.Error()
		}
		return out
	}
	for _, args := range [][]string{{"diff-files", "--name-only"}, {"diff-index", "--name-only", "HEAD"}} {
		if got, want := stat(dir, args...), stat(twin, args...); got != want {
			t.Errorf("git %s: %q, after git's own commit %q", strings.Join(args, " "), got, want)
		}
	}
	compared := [][]string{
		{"show", "--stat", "--format=%T%n%D%n%an %ae %cn %ce%n%B"},
		{"diff", "HEAD"},
		{"ls-files", "-v", "--stage"},
		{"status", "--porcelain=v2", "--ignored"}, // with the modes and blobs of whatever differs: all that `git diff` and `git diff --cached` read
		{"reflog", "-1", "--format=%gn %gs"},
		{"reflog", "-1", "--format=%gn %gs", "main"},
		{"rev-list", "--walk-reflogs", "--count", "HEAD"},
	}
	entries := "\n" + run(t, twin, "ls-files", "-v", "--stage")
	if strings.Contains(entries, " 160000 ") { // a slow shell script, which says nothing where no submodule is
		compared = append(compared, []string{"submodule", "status"})
	}
	if strings.Contains(entries, "\nS ") {
		compared = append(compared, []string{"sparse-checkout", "list"})
	}
	if out, err := try(t, dir, "fsck", "--strict", "--no-dangling"); out != "" || err != nil {
		compared = append(compared, []string{"fsck", "--strict", "--no-dangling"}) // git's own commit may leave the same
	}
	for _, args := range compared {
		got, gotErr := try(t, dir, args...)
		want, wantErr := try(t, twin, args...)
		if got = strings.ReplaceAll(got, dir, twin); got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("git %s:\n%s%v\nafter git's own commit\n%s%v", strings.Join(args, " "), got, gotErr, want, wantErr)
		}
	}
	for _, name := range tracked(t, twin) {
		got, gotErr := os.ReadFile(filepath.Join(dir, name))
		want, wantErr := os.ReadFile(filepath.Join(twin, name))
		if string(got) != string(want) || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s on disk: %q, after git's own commit %q", name, got, want)
		}
		gotInfo, err := os.Lstat(filepath.Join(dir, name))
		wantInfo, wantErr := os.Lstat(filepath.Join(twin, name))
		if err == nil && wantErr == nil && gotInfo.Mode() != wantInfo.Mode() {
			t.Errorf("%s is %s, after git's own commit %s", name, gotInfo.Mode(), wantInfo.Mode())
		}
	}
}

func tracked(t *testing.T, dir string) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(run(t, dir, "ls-files", "-z"), "\x00"), "\x00")
}
