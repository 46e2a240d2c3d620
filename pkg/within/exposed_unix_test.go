//go:build unix

package within

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is exposed if its mode and those of all its folders let others read it.
func TestExposed(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	file, link := filepath.Join(folder, "key"), filepath.Join(dir, "link")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		folder, file os.FileMode
		want         bool
	}{
		{0o711, 0o604, true},
		{0o755, 0o644, true},
		{0o700, 0o644, false},
		{0o755, 0o640, false},
		{0o755, 0o600, false},
	} {
		for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o755, folder: tc.folder, file: tc.file} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{file, link} {
			if got, exposed := Exposed(name); exposed != tc.want || exposed && filepath.Base(got) != "key" {
				t.Errorf("%o in %o: %s %v", tc.file, tc.folder, got, exposed)
			}
		}
	}
	for _, name := range []string{filepath.Join(dir, "none"), dir} {
		if _, exposed := Exposed(name); exposed {
			t.Error(name)
		}
	}
}
