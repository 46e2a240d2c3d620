package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What others have written since the plan is not lost.
func TestApplyPlannedLosesNothing(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, dir string){
		"changed":   func(t *testing.T, dir string) { t.Helper(); put(t, dir, "update", "theirs") },
		"removed":   func(t *testing.T, dir string) { t.Helper(); gone(t, dir, "delete") },
		"made":      func(t *testing.T, dir string) { t.Helper(); put(t, dir, "create", "theirs") },
		"made same": func(t *testing.T, dir string) { t.Helper(); put(t, dir, "create", "ours") },
		"rights": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Chmod(filepath.Join(dir, "update"), 0o500); err != nil {
				t.Fatal(err)
			}
		},
		"put back": func(t *testing.T, dir string) { t.Helper(); put(t, dir, "same", "theirs") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range []string{"update", "delete"} {
				put(t, dir, file, "old")
			}
			put(t, dir, "same", "ours")
			var cs ChangeSet
			for _, file := range []string{"create", "update", "same"} {
				cs.Write(File{Path: file, Content: []byte("ours")})
			}
			cs.Delete("delete")
			planned, err := cs.Plan(dir)
			if err != nil {
				t.Fatal(err)
			}
			meanwhile(t, dir)
			before := allOf(t, dir)
			if _, err := cs.ApplyPlanned(t.Context(), dir, planned); !errors.Is(err, ErrChanged) {
				t.Fatalf("no error that a file has changed, but %v", err)
			}
			if after := allOf(t, dir); after != before {
				t.Errorf("the folder has %s, and had %s", after, before)
			}
			if planned, err = cs.Plan(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := cs.ApplyPlanned(t.Context(), dir, planned); err != nil {
				t.Fatal(err)
			}
			if after := allOf(t, dir); after != "create=ours same=ours update=ours" {
				t.Errorf("the folder has %s", after)
			}
		})
	}
}

// Many processes that count in the same file count right.
func TestApplyPlannedIsAlone(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 10
	dir := t.TempDir()
	put(t, dir, "count", "0")
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for done := 0; done < each; {
				err := count(t, dir)
				if err != nil && !errors.Is(err, ErrChanged) {
					t.Error(err)
					return
				}
				if err == nil {
					done++
				}
			}
		})
	}
	group.Wait()
	if got := allOf(t, dir); got != "count="+strconv.Itoa(writers*each) {
		t.Error(got)
	}
}

func count(t *testing.T, dir string) error {
	t.Helper()
	var cs ChangeSet
	cs.Write(File{Path: "count"})
	planned, err := cs.Plan(dir)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(planned[0].Before()))
	if err != nil {
		return err
	}
	cs.Write(File{Path: "count", Content: []byte(strconv.Itoa(n + 1))})
	_, err = cs.ApplyPlanned(t.Context(), dir, planned)
	return err
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// allOf returns the files of a folder with their content, sorted by name.
func allOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+"="+string(content))
	}
	return strings.Join(all, " ")
}
