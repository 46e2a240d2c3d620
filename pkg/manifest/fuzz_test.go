package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPaths gives any name to the functions that keep files inside their folder. An accepted name leads to a file in the folder, and in a
// Git repository never into Git's own folder.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{
		"a", "a/b.yaml", "./a//b/", "..", "../a", "a/../../b", "a/..", "/etc/passwd", "", ".", "a\x00b", `a\..\..\b`, "C:/a", "NUL",
		".git/config", "a/.GIT/hooks/x", ".gitignore", "a/.git", "~/x", "a:b", " ", "..a/b..",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		root := t.TempDir()
		file, err := SafeJoin(root, name)
		local, repoErr := inRepo(name)
		if err != nil {
			if repoErr == nil {
				t.Errorf("%q is refused (%v), and for a repository it is %q", name, err, local)
			}
			return
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			t.Fatalf("%q is %q, which is not below %q", name, file, root)
		}
		if repoErr == nil {
			if local != rel {
				t.Errorf("%q is %q, for a repository %q", name, rel, local)
			}
			for part := range strings.SplitSeq(filepath.ToSlash(local), "/") {
				if strings.EqualFold(part, ".git") {
					t.Errorf("%q is in Git's own folder", name)
				}
			}
		}
		inside, err := os.OpenRoot(root)
		if err != nil {
			t.Fatal(err)
		}
		defer inside.Close()
		// The system may refuse a name, for example one that is too long. A name that it accepts is inside the folder.
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return
		}
		if _, err := inside.Stat(rel); err != nil {
			t.Errorf("%q was made outside of its folder: %v", name, err)
		}
	})
}

// FuzzMerge lets two people change a chart. The merged file has lines of both people and of nobody else. It does not depend on the order of
// the two, and keeps the changes that only one of them has made.
func FuzzMerge(f *testing.F) {
	values, err := os.ReadFile("../../templates/charts/in-memory/values.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(values, bytes.Replace(values, []byte("pools: []"), []byte("pools: [] # ours"), 1), append([]byte("# theirs\n"), values...))
	f.Add([]byte("a\nb\nc"), []byte("a\nb\nc\n"), []byte("b\nc"))
	f.Add([]byte("a\r\nb\r\n"), []byte("a\nb\n"), []byte("a\r\nb\r\nc\r\n"))
	f.Add([]byte{}, []byte("a"), []byte("b"))
	f.Add([]byte("a\nb\n"), []byte("b\na\n"), []byte("a\nc\na\n"))
	f.Fuzz(func(t *testing.T, base, a, b []byte) {
		for _, side := range [][]byte{a, b} {
			if merged, ok := Merge(base, side, base); !ok || !bytes.Equal(merged, side) {
				t.Errorf("the change of one alone is %q, %v", merged, ok)
			}
		}
		merged, ok := Merge(base, a, b)
		if other, also := Merge(base, b, a); ok != also || !bytes.Equal(merged, other) {
			t.Errorf("it is %q, %v, and in the other order %q, %v", merged, ok, other, also)
		}
		if !ok {
			return
		}
		known := map[string]bool{}
		for _, text := range [][]byte{base, a, b} {
			for line := range bytes.Lines(text) {
				known[string(line)] = true
			}
		}
		for line := range bytes.Lines(merged) {
			if !known[string(line)] {
				t.Errorf("nobody has written the line %q", line)
			}
		}
	})
}
