package render

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

func objectCalled(t testing.TB, name string) *content {
	t.Helper()
	c, err := newContent([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.source, c.template = Source{File: name + ".yaml", Line: 300}, "charts/x/templates/x.yaml"
	return c
}

// keep has a run of its own put something into the cache.
func keep(t testing.TB, c *cache, name string) key {
	t.Helper()
	k := digest([]byte(name))
	defer c.use()()
	c.put(k, []*content{objectCalled(t, name), objectCalled(t, name+"2")})
	return k
}

func packFiles(t testing.TB, c *cache) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(c.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// However many runs there were, there are few files, and all that was kept is there.
func TestPacksAreMerged(t *testing.T) {
	c := newCache(t.TempDir())
	for i := range 100 {
		keep(t, c, fmt.Sprint(i))
	}
	keep(t, c, "7") // once more
	if files := packFiles(t, c); len(files) > maxPacks {
		t.Errorf("%d files", len(files))
	}
	defer c.use()()
	for i := range 100 {
		name := fmt.Sprint(i)
		all, ok := c.get(digest([]byte(name)))
		if want := []*content{objectCalled(t, name), objectCalled(t, name+"2")}; !ok || !reflect.DeepEqual(all, want) {
			t.Fatalf("entry %d: %v, %t", i, all, ok)
		}
	}
	if _, ok := c.get(digest([]byte("100"))); ok {
		t.Error("there is what was never kept")
	}
}

// What was written longest ago goes first, and no more than has to; what runs that were killed left behind goes as well.
func TestPrune(t *testing.T) {
	c := newCache(t.TempDir())
	var size int64
	hours := 10
	age := func(name string) {
		at := time.Now().Add(time.Duration(-hours) * time.Hour)
		hours--
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var keys []key
	for i := range 3 {
		before := packFiles(t, c)
		keys = append(keys, keep(t, c, fmt.Sprint(i)))
		for _, name := range packFiles(t, c) {
			if !slices.Contains(before, name) {
				age(name)
				info, err := os.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				size = info.Size()
			}
		}
	}
	left := filepath.Join(c.dir, "new-123")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	age(left)
	c.pruneTo(2 * size)
	defer c.use()()
	for i, k := range keys {
		if _, ok := c.get(k); ok != (i > 0) {
			t.Errorf("entry %d: there is %v", i+1, ok)
		}
	}
	if files := packFiles(t, c); len(files) != 2 {
		t.Errorf("there are %v", files)
	}
}

// A pack that was cut or changed anywhere gives what was kept, or nothing.
func TestDamagedPack(t *testing.T) {
	c := newCache(t.TempDir())
	k := keep(t, c, "a")
	name := packFiles(t, c)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := []*content{objectCalled(t, "a"), objectCalled(t, "a2")}
	for at := range whole {
		for _, damaged := range [][]byte{whole[:at], append(append(append([]byte{}, whole[:at]...), whole[at]^1), whole[at+1:]...)} {
			if err := os.WriteFile(name, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			done := c.use()
			if all, ok := c.get(k); ok && !reflect.DeepEqual(all, want) {
				t.Errorf("changed at %d, it gives %v", at, all)
			}
			done()
		}
	}
}

func FuzzPack(f *testing.F) {
	c := newCache(f.TempDir())
	keep(f, c, "a")
	whole, err := os.ReadFile(packFiles(f, c)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-footSize])
	f.Add(appendContents(nil, []*content{objectCalled(f, "a")}))
	f.Fuzz(func(t *testing.T, content []byte) {
		decodeContents(content)
		name := filepath.Join(t.TempDir(), "x"+packSuffix)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(name)
		if err != nil {
			return
		}
		p.each(func(k key, at entry) { at.record(k) })
		_ = p.file.Close()
	})
}
