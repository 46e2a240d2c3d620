package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// What is flushed, and when: the content before the file takes its place, the folder's entries after.
func TestOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	var steps []string
	w := writer{exact: true, flush: func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		kind := "file"
		if info.IsDir() {
			kind = "folder"
		}
		steps = append(steps, kind+" while readers see "+string(content))
		return flush(f)
	}}
	if err := w.write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"file while readers see old", "folder while readers see new"}
	if runtime.GOOS == "windows" {
		want = want[:1]
	}
	if !slices.Equal(steps, want) {
		t.Errorf("flushed %q, want %q", steps, want)
	}
}

// A disk that does not take the content leaves the old file, and no other.
func TestFlushFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no disk")
	w := writer{exact: true, flush: func(*os.File) error { return broken }}
	if err := w.write(path, []byte("new"), 0o600); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	holds(t, path, "old")
	only(t, dir, "key")
}

func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"flushed": Write, "volatile": WriteVolatile} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kubeconfig")
			for _, content := range []string{"one", "a longer two", ""} {
				if err := write(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				holds(t, path, content)
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			link := filepath.Join(dir, "link")
			if err := os.Symlink("kubeconfig", link); err != nil {
				t.Fatal(err)
			}
			if err := write(link, []byte("through"), 0o600); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
				t.Errorf("the link is gone: %v", err)
			}
			holds(t, path, "through")
			if err := write(filepath.Join(dir, "no", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing folder: %v", err)
			}
			if err := write(dir, nil, 0o600); err == nil {
				t.Error("a folder was replaced")
			}
			only(t, dir, "kubeconfig", "link")
		})
	}
}

// Of many that create one file at once, one does, and nobody ever reads less than what that one wrote.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	results := make([]error, 20)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() {
			results[i] = Create(path, []byte("mark"), 0o600)
			content, err := os.ReadFile(path)
			if err != nil || string(content) != "mark" {
				t.Errorf("read %q, %v", content, err)
			}
		})
	}
	group.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d made it", made)
	}
	only(t, dir, "lock")
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "archive")
	for _, commit := range []bool{false, true} {
		f, err := New(path, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"a ", "whole"} {
			if _, err := f.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there before it is whole: %v", err)
		}
		if commit {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		f.Discard()
		if !commit {
			only(t, dir)
		}
	}
	holds(t, path, "a whole")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	only(t, dir, "archive")
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := MkdirAll(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(deep); err != nil || !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(file, "below"), 0o700); err == nil {
		t.Error("a folder below a file")
	}
}

// What a killed writer left goes, and nothing that only looks like it.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	temp, err := Stage(root, "key", []byte("half"), 0o600, true)
	if err != nil {
		t.Fatal(err)
	}
	if of, ok := IsTemporary(temp); !ok || of != "key" {
		t.Errorf("%s is of %q, %v", temp, of, ok)
	}
	others := []string{"key", ".key", ".key.fleetctl-tmp", "key.ABCDEFGHIJ.fleetctl-tmp", "..ABCDEFGHIJ.fleetctl-tmp"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := SweepFor(filepath.Join(dir, "another")); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Stat(temp); err != nil {
		t.Errorf("it was another file's: %v", err)
	}
	if err := errors.Join(Sweep(dir), Sweep(filepath.Join(dir, "missing"))); err != nil {
		t.Fatal(err)
	}
	only(t, dir, others...)
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
