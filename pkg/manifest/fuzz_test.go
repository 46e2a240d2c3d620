package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPaths gives any name to what keeps files inside their folder. What it takes can be made there and nowhere else, and of a Git
// repository never in Git's own folder.
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
		// The system may refuse a name (one that is too long): what it takes it takes inside.
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
