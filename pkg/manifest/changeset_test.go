package manifest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// tree is all that stands below root: path → content, with "/" for a folder and "-> target" for a link.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			got[rel] = "/"
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			got[rel] = "-> " + to
			return err
		default:
			b, err := os.ReadFile(path)
			got[rel] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func put(t *testing.T, root, name, content string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func paths(changes []manifest.Change) map[string]manifest.Action {
	m := map[string]manifest.Action{}
	for _, c := range changes {
		m[c.Path] = c.Action
	}
	return m
}

func TestApply(t *testing.T) {
	root := filepath.Join(t.TempDir(), "repo")
	put(t, root, "same.yaml", "a: 1\n", 0o644)
	put(t, root, "run.sh", "old\n", 0o755)
	put(t, root, "old/deep/gone.yaml", "x: 1\n", 0o644)
	put(t, root, "mine.txt", "not ours\n", 0o600)

	var cs manifest.ChangeSet
	cs.Write(
		manifest.File{Path: "new/deep/file.yaml", Content: []byte("b: 2\n")},
		manifest.File{Path: "same.yaml", Content: []byte("a: 1\n")},
		manifest.File{Path: "run.sh", Content: []byte("new\n")},
	)
	cs.Delete("old/deep/gone.yaml", "never/was.yaml")

	want := map[string]manifest.Action{
		"new/deep/file.yaml": manifest.ActionCreate, "run.sh": manifest.ActionUpdate, "old/deep/gone.yaml": manifest.ActionDelete,
	}
	before := tree(t, root)
	planned, err := cs.Plan(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, paths(planned)); diff != "" {
		t.Errorf("Plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, tree(t, root)); diff != "" {
		t.Errorf("Plan changed the disk (-before +after):\n%s", diff)
	}
	applied, err := cs.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, paths(applied)); diff != "" {
		t.Errorf("Apply (-want +got):\n%s", diff)
	}
	wantTree := map[string]string{
		"same.yaml": "a: 1\n", "run.sh": "new\n", "mine.txt": "not ours\n",
		"new": "/", "new/deep": "/", "new/deep/file.yaml": "b: 2\n",
	}
	if diff := cmp.Diff(wantTree, tree(t, root)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(root, "run.sh")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh: %v, %v: permissions must stay", info.Mode(), err)
	}
	again, err := cs.Apply(root)
	if err != nil || len(again) != 0 {
		t.Errorf("second Apply: %v, %v; want no change", again, err)
	}
}

func TestEmpty(t *testing.T) {
	root := filepath.Join(t.TempDir(), "missing")
	var cs manifest.ChangeSet
	changes, err := cs.Apply(root)
	if err != nil || len(changes) != 0 || changes == nil {
		t.Errorf("Apply = %#v, %v", changes, err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("an empty set made the root: %v", err)
	}
	if planned, err := cs.Plan(root); len(planned) > 0 || err != nil {
		t.Errorf("Plan = %#v, %v", planned, err)
	}
}

func TestLastWordWins(t *testing.T) {
	root := t.TempDir()
	var cs manifest.ChangeSet
	cs.Delete("a")
	cs.Write(manifest.File{Path: "a", Content: []byte("1")}, manifest.File{Path: "a", Content: []byte("2")}, manifest.File{Path: "b"})
	cs.Delete("b")
	if _, err := cs.Apply(root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "2"}, tree(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A refused change leaves root and its surroundings unchanged.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		writes  []string
		deletes []string
		want    string
	}{
		"parent":              {writes: []string{"ok", "../out"}, want: "does not stay inside"},
		"hidden parent":       {writes: []string{"a/../../out"}, want: "does not stay inside"},
		"absolute":            {writes: []string{"/etc/passwd"}, want: "does not stay inside"},
		"empty":               {writes: []string{""}, want: "does not stay inside"},
		"root itself":         {writes: []string{"a/.."}, want: "does not stay inside"},
		"NUL":                 {writes: []string{"a\x00b"}, want: "does not stay inside"},
		"git":                 {writes: []string{".git/hooks/post-commit"}, want: "Git's own folder"},
		"git of a submodule":  {writes: []string{"sub/.GIT/config"}, want: "Git's own folder"},
		"link out, folder":    {writes: []string{"ok", "outlink/file"}, want: "outlink/file"},
		"link out, delete":    {deletes: []string{"outlink/secret"}, want: "escapes"},
		"link itself":         {writes: []string{"filelink"}, want: "not a regular file"},
		"folder in its place": {writes: []string{"dir"}, want: "not a regular file"},
		"file as folder":      {writes: []string{"plain/file"}, want: "plain/file"},
		"file and folder":     {writes: []string{"x", "x/y"}, want: "both a file and the folder"},
		"twice":               {writes: []string{"x", "./x"}, want: "changed twice"},
		"delete parent":       {deletes: []string{"../outside/secret"}, want: "does not stay inside"},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			root := filepath.Join(around, "root")
			put(t, root, "dir/file", "d", 0o644)
			put(t, root, "plain", "p", 0o644)
			put(t, around, "outside/secret", "s", 0o600)
			for link, to := range map[string]string{"outlink": "../outside", "filelink": "plain"} {
				if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			before := tree(t, around)
			var cs manifest.ChangeSet
			for _, w := range tc.writes {
				cs.Write(manifest.File{Path: w, Content: []byte("evil")})
			}
			cs.Delete(tc.deletes...)
			_, err := cs.Apply(root)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v; want %q in it", err, tc.want)
			}
			if diff := cmp.Diff(before, tree(t, around)); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	root := t.TempDir()
	put(t, root, "b.yaml", "one: 1\ntwo: 2\n", 0o644)
	put(t, root, "c.yaml", "gone: true\n", 0o644)
	put(t, root, "d.bin", "\x00\x01", 0o644)
	var cs manifest.ChangeSet
	cs.Write(
		manifest.File{Path: "a.yaml", Content: []byte("new: true\n")},
		manifest.File{Path: "b.yaml", Content: []byte("one: 1\ntwo: 3\n")},
		manifest.File{Path: "d.bin", Content: []byte("\x00\x02")},
	)
	cs.Delete("c.yaml")
	planned, err := cs.Plan(root)
	if err != nil {
		t.Fatal(err)
	}
	got := manifest.Diff(planned)
	want := `--- /dev/null
+++ b/a.yaml
@@ -0,0 +1 @@
+new: true
--- a/b.yaml
+++ b/b.yaml
@@ -1,2 +1,2 @@
 one: 1
-two: 2
+two: 3
--- a/c.yaml
+++ /dev/null
@@ -1 +0,0 @@
-gone: true
binary files a/d.bin and b/d.bin differ
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}

// The path of a file stays on the lines that name it.
func TestDiffOfHostilePath(t *testing.T) {
	c := manifest.Compare("a\n+++ b/fleet.yaml\n+evil", []byte("old\n"), []byte("new\n"))
	if diff := c.Diff(); strings.Count(diff, "\n") != 5 {
		t.Errorf("%q", diff)
	}
}
