package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
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
	temp := TempName("key")
	if of, ok := IsTemporary(temp); !ok || of != "key" {
		t.Errorf("%s is of %q, %v", temp, of, ok)
	}
	others := []string{
		"key", ".key", ".key.fleetctl-tmp", "key.ABCDEFGHIJ.fleetctl-tmp", "..ABCDEFGHIJ.fleetctl-tmp",
		".key.2026-11-22.fleetctl-tmp",
	}
	for _, name := range append([]string{temp}, others...) {
		write(t, dir, name)
	}
	if err := SweepFor(filepath.Join(dir, "another")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, temp)); err != nil {
		t.Errorf("it was another file's: %v", err)
	}
	if err := errors.Join(Sweep(dir), Sweep(filepath.Join(dir, "missing"))); err != nil {
		t.Fatal(err)
	}
	only(t, dir, others...)
}

// What is not in its place yet is left alone as long as its process lives.
func TestSweepLeavesTheLiving(t *testing.T) {
	if !holdsOpen {
		t.Log("what a process has open cannot be removed here")
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	staged, err := Stage(root, "key", []byte("whole"), 0o600, true)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := New(filepath.Join(dir, "archive"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := NewFolder(filepath.Join(dir, "tree"), 0o700)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder.Path, "in it")
	for range 2 {
		if err := errors.Join(Sweep(dir), SweepTree(root, false, func(string, bool) bool { return false })); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(Flush(staged), staged.Place(), stream.Commit(), folder.Commit()); err != nil {
		t.Fatal(err)
	}
	only(t, dir, "archive", "key", "tree")
	only(t, filepath.Join(dir, "tree"), "in it")
	holds(t, filepath.Join(dir, "key"), "whole")
	for _, left := range []func() (interface{ Close() error }, error){
		func() (interface{ Close() error }, error) {
			s, err := Stage(root, "key", nil, 0o600, true)
			return s.held, err
		},
		func() (interface{ Close() error }, error) {
			f, err := NewFolder(filepath.Join(dir, "other"), 0o700)
			write(t, f.Path, "in it")
			return f.held, err
		},
	} {
		held, err := left()
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Close(); err != nil && holdsOpen { // as the kernel does it for a process that is killed
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	only(t, dir, "archive", "key", "tree")
}

// Writers and those who sweep do not know of each other, and no writer fails.
func TestSweepBesideWriters(t *testing.T) {
	dir := t.TempDir()
	var writers, sweeper sync.WaitGroup
	done := make(chan struct{})
	sweeper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := Sweep(dir); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 4 {
		writers.Go(func() {
			for range 50 {
				if err := WriteVolatile(filepath.Join(dir, string(rune('a'+i))), []byte("whole"), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	sweeper.Wait()
	only(t, dir, "a", "b", "c", "d")
}

// Below a folder, what is to be left alone is.
func TestSweepTree(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	deep := filepath.Join(dir, "a", "b")
	if err := errors.Join(os.MkdirAll(deep, 0o755), os.MkdirAll(filepath.Join(dir, ".git"), 0o755)); err != nil {
		t.Fatal(err)
	}
	const known = ".known.ABCDEFGHIJ.fleetctl-tmp"
	write(t, deep, known)
	write(t, deep, TempName("key"))
	kept := TempName("key")
	write(t, filepath.Join(dir, ".git"), kept)
	skip := func(name string, isDir bool) bool { return isDir && name == ".git" || name == "a/b/"+known }
	link := TempName("link")
	if err := os.Symlink("key", filepath.Join(deep, link)); err != nil {
		t.Fatal(err)
	}
	if err := SweepTree(root, false, skip); err != nil {
		t.Fatal(err)
	}
	only(t, deep, known, link)
	if err := SweepTree(root, true, skip); err != nil {
		t.Fatal(err)
	}
	only(t, deep, known)
	only(t, filepath.Join(dir, ".git"), kept)
}

// A program that has just been put in its place can be run.
func TestProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no such thing as a file that is busy because a writer has it open
	}
	path := filepath.Join(t.TempDir(), "program")
	for range 20 {
		if err := Write(path, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Error(err)
	}
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

// A temporary folder is there until its run removes it; what a killed one has left goes with the next.
func TestTempFolder(t *testing.T) {
	if !holdsOpen {
		return // nothing tells there whose a folder is
	}
	temp := t.TempDir()
	dead := filepath.Join(temp, TempName("fleetctl-commit"))
	others := []string{TempName("other"), "fleetctl-commit-1", "mine"}
	for _, dir := range append([]string{filepath.Base(dead)}, others...) {
		if err := os.MkdirAll(filepath.Join(temp, dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, removeFirst, err := TempFolder(temp, "commit")
	if err != nil {
		t.Fatal(err)
	}
	write(t, first, "file")
	second, removeSecond, err := TempFolder(temp, "edit")
	if err != nil {
		t.Fatal(err)
	}
	only(t, temp, append(others, filepath.Base(first), filepath.Base(second))...)
	if info, err := os.Stat(first); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := errors.Join(removeFirst(), removeSecond()); err != nil {
		t.Error(err)
	}
	only(t, temp, others...)
}
