package within

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestNothingOutside(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "secret")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "folder", "file"), "content")
	for link, target := range map[string]string{
		"absolute":      filepath.Join(outside, "secret"),
		"inside":        filepath.Join("folder", "file"),
		"up":            filepath.Join("..", filepath.Base(outside), "secret"),
		"folder-link":   outside,
		"chain":         "absolute",
		"loop":          "loop",
		"folder-inside": "folder",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"absolute", "up", "chain", "folder-link/secret", "../" + filepath.Base(outside) + "/secret", "loop",
		filepath.ToSlash(outside) + "/secret",
	} {
		if content, err := ReadFile(dir, name, 100); err == nil {
			t.Errorf("%s was read: %s", name, content)
		}
		if Exists(dir, name) {
			t.Errorf("%s is said to be there", name)
		}
	}
	for _, name := range []string{"inside", "folder/file", "folder-inside/file"} {
		if content, err := ReadFile(dir, name, 100); err != nil || string(content) != "content" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if entries, err := ReadDir(dir, "folder-link"); err == nil {
		t.Errorf("a folder outside was listed: %v", entries)
	}
	if entries, err := ReadDir(dir, "folder"); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := WalkDir(dir, "folder-link", func(_ string, _ fs.DirEntry, err error) error { return err }); err == nil {
		t.Error("a folder outside was walked")
	}
	var seen []string
	if err := WalkDir(dir, ".", func(name string, _ fs.DirEntry, err error) error { seen = append(seen, name); return err }); err != nil {
		t.Error(err)
	}
	if got := strings.Join(seen, " "); strings.Contains(got, "secret") || !strings.Contains(got, "folder/file") {
		t.Errorf("walked %s", got)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "large"), strings.Repeat("x", 101))
	for most, want := range map[int64]int{100: 100, 101: 101, 102: 101} {
		if content, err := Start(dir, "large", most); err != nil || len(content) != want {
			t.Errorf("the first %d bytes of 101: %d, %v", most, len(content), err)
		}
	}
	for most, want := range map[int64]error{100: ErrTooLarge, 101: nil, 102: nil} {
		if content, err := ReadFile(dir, "large", most); !errors.Is(err, want) || err == nil && len(content) != 101 {
			t.Errorf("%d bytes at most of 101: %d, %v", most, len(content), err)
		}
	}
	write(t, filepath.Join(dir, "huge"), "")
	if err := os.Truncate(filepath.Join(dir, "huge"), 8<<40); err != nil { // with a hole: it takes no room on the disk
		t.Fatal(err)
	}
	for most, want := range map[int64]string{100: "100 bytes", 64 << 10: "64 KiB", 4 << 40: "4194304 MiB"} {
		_, err := ReadFile(dir, "huge", most)
		if says := "read huge: too large: it has more than " + want; err == nil || err.Error() != says {
			t.Errorf("%v, want %s", err, says)
		}
	}
	if _, err := ReadFile(dir, ".", 100); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := ReadFile(dir, "gone", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if runtime.GOOS != "windows" { // which has no such files
		pipe(t, filepath.Join(dir, "pipe"))
		if _, err := ReadFile(dir, "pipe", 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("a pipe: %v", err)
		}
		if _, err := ReadDir(dir, "pipe"); !errors.Is(err, ErrNotFolder) {
			t.Errorf("a pipe, listed: %v", err)
		}
		if _, err := Named(filepath.Join(dir, "pipe"), 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("a pipe, named: %v", err)
		}
		if _, err := Named(os.DevNull, 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("a device, named: %v", err)
		}
	}
	for most, want := range map[int64]error{100: ErrTooLarge, 101: nil} {
		if content, err := Named(filepath.Join(dir, "large"), most); !errors.Is(err, want) || err == nil && len(content) != 101 {
			t.Errorf("%d bytes at most of 101, named: %d, %v", most, len(content), err)
		}
	}
	if _, err := Named(filepath.Join(dir, "gone"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing, named: %v", err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
