package cache

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/report"
)

func TestKey(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module a")
	key := func(k *Key) string {
		t.Helper()
		s, err := k.String()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	base := key(NewKey("r").Add("a", "b").AddFiles(dir, "go.mod"))
	if again := key(NewKey("r").Add("a", "b").AddFiles(dir, "go.mod")); again != base {
		t.Errorf("the same inputs give %s and %s", base, again)
	}
	others := map[string]*Key{
		"other recipe":          NewKey("r2").Add("a", "b").AddFiles(dir, "go.mod"),
		"other value":           NewKey("r").Add("a", "c").AddFiles(dir, "go.mod"),
		"values cut otherwise":  NewKey("r").Add("ab").AddFiles(dir, "go.mod"),
		"a value for two":       NewKey("r").Add("a", "b", "").AddFiles(dir, "go.mod"),
		"without the file":      NewKey("r").Add("a", "b"),
		"separators in a value": NewKey("r").Add("a,1:b").AddFiles(dir, "go.mod"),
	}
	for name, k := range others {
		if key(k) == base {
			t.Errorf("%s: the key is the same", name)
		}
	}
	write(t, filepath.Join(dir, "go.mod"), "module b")
	if key(NewKey("r").Add("a", "b").AddFiles(dir, "go.mod")) == base {
		t.Error("a changed file gives the same key")
	}
	if _, err := NewKey("r").AddFiles(dir, "go.sum").String(); err == nil {
		t.Error("a missing file gives a key")
	}
}

func TestMake(t *testing.T) {
	c := open(t, t.TempDir())
	builds := 0
	build := func(_ context.Context, dir string) error {
		builds++
		return os.WriteFile(filepath.Join(dir, "out"), []byte("x"), 0o644)
	}
	first, err := c.Make(context.Background(), "thing", NewKey("1"), build)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Make(context.Background(), "thing", NewKey("1"), build); err != nil || builds != 1 {
		t.Errorf("built %d times, %v; want once", builds, err)
	}
	if _, err := c.Make(context.Background(), "thing-else", NewKey("1"), build); err != nil {
		t.Fatal(err)
	}
	second, err := c.Make(context.Background(), "thing", NewKey("2"), build)
	if err != nil || second == first || builds != 3 {
		t.Errorf("another key: %s, %v after %d builds", second, err, builds)
	}
	if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older output is still there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.Dir(), "store", "thing-else-*")); len(left) != 1 {
		t.Errorf("outputs of another name were touched: %v", left)
	}
}

func TestMakeKeepsNothingOfAFailure(t *testing.T) {
	c := open(t, t.TempDir())
	failure := errors.New("no")
	_, err := c.Make(context.Background(), "thing", NewKey("1"), func(_ context.Context, dir string) error {
		write(t, filepath.Join(dir, "half"), "x")
		return failure
	})
	if !errors.Is(err, failure) {
		t.Fatalf("err = %v", err)
	}
	for _, sub := range []string{"store", "tmp"} {
		if left, _ := os.ReadDir(filepath.Join(c.Dir(), sub)); len(left) != 0 {
			t.Errorf("%s holds %v", sub, left)
		}
	}
}

func TestOpenIsExclusive(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(t.Context(), dir, report.New(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := Open(impatient, dir, report.New(io.Discard)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two builds got the same cache, or one did not wait: %v", err)
	}
	waiting := make(chan error)
	go func() {
		second, err := Open(t.Context(), dir, report.New(io.Discard))
		if err == nil {
			err = second.Close()
		}
		waiting <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func open(t *testing.T, dir string) *Cache {
	t.Helper()
	c, err := Open(t.Context(), dir, report.New(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
