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

const upper = "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n"

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

var setUps = map[string]setUp{
	"plain": {},
	"attributes in a folder": {
		config: upper, files: map[string]string{".gitattributes": "*.yaml text eol=crlf\n", "top/.gitattributes": "*.yaml -text filter=upper\n"},
	},
	"attributes in a folder of another": {files: map[string]string{
		"top/.gitattributes":   "x.yaml eol=crlf\n",
		"other/.gitattributes": "* filter=none\n",
	}},
	"a macro": {
		config: upper,
		files:  map[string]string{".gitattributes": "[attr]secret filter=upper diff=upper\ntop/** secret\n"},
	},
	"a macro in a folder is none": {
		config: upper,
		files:  map[string]string{"top/.gitattributes": "[attr]secret filter=upper\nx.yaml secret\n"},
	},
	"a macro taken back": {
		config: upper,
		files:  map[string]string{".gitattributes": "[attr]secret filter=upper\n*.yaml secret\n", "top/.gitattributes": "x.yaml !filter\n"},
	},
	"info/attributes": {config: upper, before: file(".git/info/attributes", "*.yaml filter=upper\n")},
	"info/attributes against a folder's": {
		config: upper, files: map[string]string{"top/.gitattributes": "*.yaml filter=upper\n"},
		before: file(".git/info/attributes", "top/x.yaml -filter\n"),
	},
	"core.attributesFile": {config: upper + "[core]\n\tattributesFile = ~/attributes\n"},
	"core.attributesFile in the work tree": {
		config: upper,
		before: all(file("mine", "*.yaml eol=crlf\n"), git("config", "core.attributesFile", "mine")),
	},
	"autocrlf true":  {config: "[core]\n\tautocrlf = true\n"},
	"autocrlf input": {config: "[core]\n\tautocrlf = input\n"},
	"autocrlf input, CRLF on disk": {
		config: "[core]\n\tautocrlf = input\n",
		after:  file("top/x.yaml", strings.ReplaceAll(body, "\n", "\r\n")),
	},
	"safecrlf": {config: "[core]\n\tautocrlf = true\n\tsafecrlf = true\n"},
	"safecrlf, CRLF in the commit": {
		config: "[core]\n\tsafecrlf = true\n",
		files:  map[string]string{"top/x.yaml": strings.ReplaceAll(body, "\n", "\r\n"), ".gitattributes": "*.md text\n"},
	},
	"eol=crlf": {files: map[string]string{".gitattributes": "* text eol=crlf\n"}},
	"UTF-16": {files: map[string]string{
		".gitattributes": "top/x.yaml working-tree-encoding=UTF-16\n",
		"top/x.yaml":     utf16le(body),
	}},
	"executable": {before: func(t *testing.T, dir string) { chmod(t, dir, "top/x.yaml") }},
	"executable, core.fileMode false": {after: all(git("config", "core.fileMode", "false"),
		git("update-index", "--chmod=+x", "top/x.yaml"), git("commit", "-q", "-m", "x"))},
	"executable on disk alone": {after: all(git("config", "core.fileMode", "false"),
		func(t *testing.T, dir string) { chmod(t, dir, "top/x.yaml") })},
	"links":       {before: all(link("a/link", "../top/x.yaml"), link("broken", "nowhere"), link("folder", "top"))},
	"a submodule": {before: submodule},
	"a sparse checkout": {
		files: map[string]string{"far/away": "1\n", "far/x/y": "1\n"},
		after: git("sparse-checkout", "set", "top"),
	},
	"a sparse checkout, no cone": {
		files: map[string]string{"far/away": "1\n"},
		after: git("sparse-checkout", "set", "--no-cone", "/*", "!/far/"),
	},
	"skip-worktree": {
		files: map[string]string{"other": "1\n"},
		after: all(git("update-index", "--skip-worktree", "other"), file("other", "mine\n")),
	},
	"assume-unchanged": {
		files: map[string]string{"other": "1\n"},
		after: all(git("update-index", "--assume-unchanged", "other"), file("other", "mine\n")),
	},
	"intent to add": {after: all(file("later", "1\n"), git("add", "-N", "later"))},
	"index version 4": {
		files: map[string]string{"top/y": "1\n", "z": "1\n"},
		after: all(git("update-index", "--index-version", "4"), git("update-index", "--assume-unchanged", "top/y")),
	},
	"split index": {after: git("update-index", "--split-index"), refused: true},
	"a sparse index": {
		files: map[string]string{"far/away": "1\n"},
		after: git("sparse-checkout", "set", "--cone", "--sparse-index", "top"), refused: true,
	},
	"a partial clone": {after: all(git("config", "core.repositoryFormatVersion", "1"),
		git("config", "extensions.partialClone", "origin")), refused: true},
	"many files":                  {config: "[feature]\n\tmanyFiles = true\n"},
	"an index without a checksum": {after: withoutChecksum},
	"hooks elsewhere":             {config: "[core]\n\thooksPath = ~/hooks\n"},
	"hooks below the top": {before: all(git("config", "core.hooksPath", ".hooks"),
		program(".hooks/pre-commit", "echo hooked >>top/x.yaml; git add top/x.yaml\n"), git("add", ".hooks"))},
	"a hook adds a file": {before: program(".git/hooks/pre-commit", "echo made >made; git add made\n")},
	"a hook removes a file": {
		files: map[string]string{"old": "1\n"},
		after: program(".git/hooks/pre-commit", "git rm -q old\n"),
	},
	"a hook stages by pattern":          {after: program(".git/hooks/pre-commit", "sed -i s/three/THREE/ top/x.yaml; git add -u\n")},
	"a hook changes and does not stage": {after: program(".git/hooks/pre-commit", "echo '# more' >>top/x.yaml; exit 0\n")},
	"prepare-commit-msg": {after: program(".git/hooks/prepare-commit-msg",
		`printf '%s %s\n# a comment\n' "$2" "$(cat "$1")" >"$1"`+"\n")},
	"commit.cleanup strip": {config: "[commit]\n\tcleanup = strip\n", message: "subject\n\n# gone\n; kept\n\n\nbody  \n"},
	"commit.cleanup and commentChar": {
		config:  "[commit]\n\tcleanup = strip\n[core]\n\tcommentChar = \";\"\n",
		message: "subject\n\n# kept\n; gone\nbody\n",
	},
	"commit.cleanup verbatim":    {config: "[commit]\n\tcleanup = verbatim\n", message: "subject\n\n\n\nbody  \n# kept\n"},
	"commit.cleanup scissors":    {config: "[commit]\n\tcleanup = scissors\n", message: "subject\n\nbody  \n# kept\n"},
	"commentChar":                {config: "[core]\n\tcommentChar = s\n", message: "subject\n\n# kept\n"},
	"a message with empty lines": {message: "\n\nsubject  \n\n\n\nbody\t\n\n"},
	"commit.template":            {config: "[commit]\n\ttemplate = ~/template\n"},
	"includeIf":                  {config: "[includeIf \"gitdir:**/fleet/.git\"]\n\tpath = more\n"},
	"a git folder elsewhere": {before: func(t *testing.T, dir string) {
		run(t, dir, "init", "-q", "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"))
	}},
	"packed references": {after: git("pack-refs", "--all")},
	"packed objects":    {after: git("gc", "-q")},
	"a detached working tree beside": {after: func(t *testing.T, dir string) {
		run(t, dir, "worktree", "add", "-q", filepath.Join(t.TempDir(), "beside"), "-b", "beside")
	}},
	"a filter that goes on running": {
		config: longRunning("required = true"),
		files:  map[string]string{".gitattributes": "top/* filter=long\n"},
	},
	"a filter that goes on running, not required": {
		config: longRunning(""),
		files:  map[string]string{".gitattributes": "*.yaml filter=long\n"},
	},
	"a filter that goes on running, and clean": {
		config: longRunning("clean = false\n\tsmudge = false"),
		files:  map[string]string{".gitattributes": "*.yaml filter=long\n"},
	},
	"a linked working tree": {in: linked},
	"a linked working tree with hooks": {before: program(".git/hooks/pre-commit",
		"echo \"# $(pwd | sed s,.*/,,) $GIT_PREFIX\" >>top/x.yaml; git add top/x.yaml\n"), in: linked},
	"a linked working tree with filters": {
		config: longRunning("required = true"),
		files:  map[string]string{".gitattributes": "top/* filter=long\n"}, in: linked,
	},
	"a linked working tree, sparse": {
		files: map[string]string{"far/away": "1\n"},
		in:    then(linked, git("sparse-checkout", "set", "top")),
	},
	"a linked working tree's own hooks": {
		after: git("config", "extensions.worktreeConfig", "true"),
		in: then(linked, all(program("own/pre-commit", "echo own >>top/x.yaml; git add top/x.yaml\n"),
			git("config", "--worktree", "core.hooksPath", "own"))),
	},
	"a linked working tree of a bare repository": {in: func(t *testing.T, dir string) string {
		t.Helper()
		bare, beside := filepath.Join(t.TempDir(), "bare"), filepath.Join(t.TempDir(), "beside")
		run(t, dir, "clone", "-q", "--bare", dir, bare)
		run(t, bare, "worktree", "add", "-q", beside, "-b", "beside")
		return beside
	}},
	"within a submodule":                 {in: asSubmodule},
	"within a submodule with hooks":      {in: then(asSubmodule, git("config", "core.hooksPath", "../../hooks"))},
	"a bare repository with a work tree": {in: bareWithWorkTree},
	"reached through a link": {in: func(t *testing.T, dir string) string {
		t.Helper()
		name := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, name); err != nil {
			t.Fatal(err)
		}
		return name
	}},
	"staged elsewhere": {
		files: map[string]string{"other": "1\n"},
		after: all(file("other", "2\n"), git("add", "other"), file("other", "3\n")), staged: true,
	},
	"names beyond ASCII": {files: map[string]string{"ä/ö ü.yaml": body, "\"quoted\"": "1\n"}, path: "ä/ö ü.yaml"},
	"no logs":            {config: "[core]\n\tlogAllRefUpdates = false\n"},
	"objects of somebody else": {after: func(t *testing.T, dir string) {
		t.Helper()
		borrow(t, dir, filepath.Join(lend(t, dir), "objects"))
	}},
	"objects of somebody else, by a relative path": {refused: true, after: func(t *testing.T, dir string) {
		t.Helper()
		relative, err := filepath.Rel(filepath.Join(dir, ".git", "objects"), filepath.Join(lend(t, dir), "objects"))
		if err != nil {
			t.Fatal(err)
		}
		borrow(t, dir, relative)
	}},
	"objects of somebody who borrows them": {refused: true, after: func(t *testing.T, dir string) {
		t.Helper()
		between := filepath.Join(t.TempDir(), "between")
		run(t, dir, "clone", "-q", "--bare", "--shared", lend(t, dir), between)
		borrow(t, dir, filepath.Join(between, "objects"))
	}},
}

const body = "1: one\n2: two\n3: 3\n4: four\n5: five\n"

func submodule(t *testing.T, dir string) {
	t.Helper()
	other := filepath.Join(os.Getenv("HOME"), "other")
	if _, err := os.Stat(other); err != nil {
		run(t, filepath.Dir(other), "init", "-q", "-b", "main", other)
		write(t, other, "file", "1\n")
		run(t, other, "add", ".")
		run(t, other, "commit", "-q", "-m", "x")
	}
	run(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
	write(t, dir, "sub/file", "mine\n")
}

// then returns a function that runs step in the folder of in, and returns this folder.
func then(in func(*testing.T, string) string, step func(*testing.T, string)) func(*testing.T, string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		dir = in(t, dir)
		step(t, dir)
		return dir
	}
}

// linked makes another working tree of the same repository, and returns its folder.
func linked(t *testing.T, dir string) string {
	t.Helper()
	beside := filepath.Join(t.TempDir(), "beside")
	run(t, dir, "worktree", "add", "-q", beside, "-b", "beside")
	return beside
}

// asSubmodule makes the repository a submodule of another one, and returns its folder there.
func asSubmodule(t *testing.T, dir string) string {
	t.Helper()
	above := filepath.Join(t.TempDir(), "above")
	run(t, filepath.Dir(above), "init", "-q", "-b", "main", above)
	run(t, above, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", dir, "fleet")
	return filepath.Join(above, "fleet")
}

// bareWithWorkTree makes a bare repository with core.worktree, and a .git file in that working tree, whose folder it returns.
func bareWithWorkTree(t *testing.T, dir string) string {
	t.Helper()
	bare, tree := filepath.Join(t.TempDir(), "fleet.git"), filepath.Join(t.TempDir(), "tree")
	run(t, dir, "clone", "-q", "--bare", dir, bare)
	write(t, tree, ".git", "gitdir: "+bare+"\n")
	run(t, bare, "config", "core.bare", "false")
	run(t, bare, "config", "core.worktree", tree)
	run(t, tree, "checkout", "-q", "-f", "main")
	return tree
}

// withoutChecksum writes an index without a checksum, as git does with index.skipHash, which feature.manyFiles sets from git 2.40 on.
func withoutChecksum(t *testing.T, dir string) {
	t.Helper()
	content := read(t, dir, ".git/index")
	write(t, dir, ".git/index", content[:len(content)-20]+strings.Repeat("\x00", 20))
}

// In every setup, an edit by fleetctl has the same result as the same edit by hand and `git commit`: the same commit, index, working tree
// and status.
func TestEditAsGitDoes(t *testing.T) {
	for name, s := range setUps {
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
