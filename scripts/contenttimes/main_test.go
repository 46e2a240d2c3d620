//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// files are what each tree of these tests has.
var files = map[string]string{"go.mod": "module x\n", "a/one.go": "package a\n", "a/b/two.txt": "two", ".git/index": "any"}

// tree writes files and a symbolic link, sets the times, and returns them by path.
func tree(t *testing.T, change func(dir string)) map[string]time.Time {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one.go", filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(dir)
	}
	if _, err := set(dir); err != nil {
		t.Fatal(err)
	}
	out := map[string]time.Time{}
	for _, name := range []string{".", ".git", "go.mod", "a", "a/one.go", "a/link", "a/b", "a/b/two.txt"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = info.ModTime()
	}
	return out
}

func TestSameContentHasTheSameTimes(t *testing.T) {
	first := tree(t, nil)
	second := tree(t, func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, ".git", "index"), []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	for name, at := range first {
		if !second[name].Equal(at) {
			t.Errorf("%s has %v, and in a second tree %v", name, at, second[name])
		}
		if age := time.Since(at); age < 24*time.Hour {
			t.Errorf("%s is from %v: Go's test cache takes no file that is new", name, at)
		}
	}
}

func TestOtherContentHasOtherTimes(t *testing.T) {
	first := tree(t, nil)
	second := tree(t, func(dir string) {
		if err := os.WriteFile(filepath.Join(dir, "a", "b", "two.txt"), []byte("TWO"), 0o600); err != nil { // as long as before
			t.Fatal(err)
		}
		link := filepath.Join(dir, "a", "link")
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("b/two.txt", link); err != nil {
			t.Fatal(err)
		}
	})
	for name, changed := range map[string]bool{
		".": true, "a": true, "a/b": true, "a/b/two.txt": true, "a/link": true,
		"go.mod": false, "a/one.go": false, ".git": false,
	} {
		if got := !second[name].Equal(first[name]); got != changed {
			t.Errorf("%s has another time: %v, want %v", name, got, changed)
		}
	}
}
