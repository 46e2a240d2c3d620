package within

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// An FS is a file system as Go means it.
func TestFS(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "b/d/e", "f-g/h", "f/h"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), "content of "+name)
	}
	files, err := FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "a", "b/c", "b/d/e", "f-g/h", "f/h"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"gone", "a/gone", "b/gone/e", "b/d/e/f"} {
		if _, err := fs.Stat(files, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is opened: %v", name, err)
		}
	}
	if _, err := FS(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// Links lead nowhere, and pipes are not opened.
func TestFSOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no pipes, and links need a privilege
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "folder", "file"), "content")
	for link, target := range map[string]string{
		"link": "folder/file", "folder-link": "folder", "out": "/etc/passwd", "up": ".",
		"folder/back": "../folder", "dangling": "gone",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	pipe(t, filepath.Join(dir, "pipe"))
	files, err := FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "folder-link", "out", "up", "folder/back", "dangling", "pipe"} {
		if info, err := fs.Stat(files, name); err != nil || info.Mode().IsRegular() || info.IsDir() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if _, err := files.Open(name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s is opened: %v", name, err)
		}
		if _, err := fs.ReadDir(files, name); !errors.Is(err, ErrNotFolder) {
			t.Errorf("%s is listed: %v", name, err)
		}
	}
	for _, name := range []string{"folder-link/file", "up/folder/file", "folder/back/file", "pipe/file"} {
		if _, err := fs.ReadFile(files, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
	var seen []string
	if err := fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error { seen = append(seen, name); return err }); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(seen, " "), ". dangling folder folder/back folder/file folder-link link out pipe up"; got != want {
		t.Errorf("walked %s", got)
	}
}
