package within

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What opens a file in one step opens nothing that is not in the folder, and follows no link, also where one comes up after somebody has
// looked.
func TestOpensNothingOutside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "file"), "secret")
	write(t, filepath.Join(dir, "folder", "file"), "content")
	for link, target := range map[string]string{
		"link": filepath.Join(outside, "file"), "inside": "folder",
		"up": "../" + filepath.Base(outside), "magic": "/proc/self/root",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	open := opener(root)
	for _, name := range []string{
		"link", "inside/file", "up/file", "magic/etc/passwd", "../" + filepath.Base(outside) + "/file",
		filepath.Join(outside, "file"),
	} {
		if f, err := open(name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	files, err := FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(files, "folder/file"); err != nil || string(content) != "content" {
		t.Fatalf("%q, %v", content, err)
	}
	if err := os.Remove(filepath.Join(dir, "folder", "file")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, "folder", "file")); err != nil {
		t.Fatal(err)
	}
	if content, err := fs.ReadFile(files, "folder/file"); err == nil {
		t.Errorf("a link that came up later was followed: %q", content)
	}
}
