package gitrepo_test

import (
	"os"
	"path/filepath"
	"testing"
)

// treeSetUps have the working tree apart from the repository: linked, of a bare repository, of a submodule.
var treeSetUps = map[string]setUp{
	"a git folder elsewhere": {before: func(t *testing.T, dir string) {
		run(t, dir, "init", "-q", "--separate-git-dir", filepath.Join(t.TempDir(), "elsewhere"))
	}},
	"a detached working tree beside": {after: func(t *testing.T, dir string) {
		run(t, dir, "worktree", "add", "-q", filepath.Join(t.TempDir(), "beside"), "-b", "beside")
	}},
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
