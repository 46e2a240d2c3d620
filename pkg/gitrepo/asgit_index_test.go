package gitrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// indexSetUps have an index, modes of files, objects or references that are out of the ordinary.
var indexSetUps = map[string]setUp{
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
	"includeIf":                   {config: "[includeIf \"gitdir:**/fleet/.git\"]\n\tpath = more\n"},
	"packed references":           {after: git("pack-refs", "--all")},
	"packed objects":              {after: git("gc", "-q")},
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

// withoutChecksum writes an index without a checksum, as git does with index.skipHash, which feature.manyFiles sets from git 2.40 on.
func withoutChecksum(t *testing.T, dir string) {
	t.Helper()
	content := read(t, dir, ".git/index")
	write(t, dir, ".git/index", content[:len(content)-20]+strings.Repeat("\x00", 20))
}
