package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// bodyOf is what the tests keep under a name.
func bodyOf(name string) []byte { return []byte("the body of " + name + "\n" + name + "2") }

// keep has a run of its own put something into the cache.
func keep(t testing.TB, c *Store, name string) Key {
	t.Helper()
	k := Digest([]byte(name))
	defer c.Use()()
	c.Put(k, bodyOf(name))
	return k
}

func packFiles(t testing.TB, c *Store) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(c.dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// However many runs there were, there are few files, and all that was kept is there.
func TestPacksAreMerged(t *testing.T) {
	c := New(t.TempDir())
	for i := range 100 {
		keep(t, c, fmt.Sprint(i))
	}
	keep(t, c, "7") // once more
	if files := packFiles(t, c); len(files) > maxPacks {
		t.Errorf("%d files", len(files))
	}
	defer c.Use()()
	for i := range 100 {
		name := fmt.Sprint(i)
		all, ok := c.Get(Digest([]byte(name)))
		if !ok || !bytes.Equal(all, bodyOf(name)) {
			t.Fatalf("entry %d: %q, %t", i, all, ok)
		}
	}
	if _, ok := c.Get(Digest([]byte("100"))); ok {
		t.Error("there is what was never kept")
	}
}

// What was written longest ago goes first, and no more than has to; what runs that were killed left behind goes as well.
func TestPrune(t *testing.T) {
	c := New(t.TempDir())
	var size int64
	hours := 10
	age := func(name string) {
		at := time.Now().Add(time.Duration(-hours) * time.Hour)
		hours--
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var keys []Key
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
	defer c.Use()()
	for i, k := range keys {
		if _, ok := c.Get(k); ok != (i > 0) {
			t.Errorf("entry %d: there is %v", i+1, ok)
		}
	}
	if files := packFiles(t, c); len(files) != 2 {
		t.Errorf("there are %v", files)
	}
}

// A pack that was cut or changed anywhere gives what was kept, or nothing.
func TestDamagedPack(t *testing.T) {
	c := New(t.TempDir())
	k := keep(t, c, "a")
	name := packFiles(t, c)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := bodyOf("a")
	for at := range whole {
		for _, damaged := range [][]byte{whole[:at], append(append(append([]byte{}, whole[:at]...), whole[at]^1), whole[at+1:]...)} {
			if err := os.WriteFile(name, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			done := c.Use()
			if all, ok := c.Get(k); ok && !bytes.Equal(all, want) {
				t.Errorf("changed at %d, it gives %v", at, all)
			}
			done()
		}
	}
}

func FuzzPack(f *testing.F) {
	c := New(f.TempDir())
	keep(f, c, "a")
	whole, err := os.ReadFile(packFiles(f, c)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-footSize])
	f.Add(bodyOf("a"))
	f.Fuzz(func(t *testing.T, content []byte) {
		name := filepath.Join(t.TempDir(), "x"+packSuffix)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(name)
		if err != nil {
			return
		}
		p.each(func(k Key, at entry) { at.record(k) })
		_ = p.file.Close()
	})
}

// What is put outside of a run is not kept, and a store without a folder keeps nothing: neither is an error.
func TestStoreThatKeepsNothing(t *testing.T) {
	k := Digest([]byte("a"))
	for name, s := range map[string]*Store{"no folder": New(""), "a folder that cannot be": New(filepath.Join(os.DevNull, "x"))} {
		done := s.Use()
		s.Put(k, bodyOf("a"))
		done()
		done = s.Use()
		if body, ok := s.Get(k); ok {
			t.Errorf("%s: it has %q", name, body)
		}
		done()
	}
	s := New(t.TempDir())
	s.Put(k, bodyOf("a"))
	defer s.Use()()
	if body, ok := s.Get(k); ok {
		t.Errorf("outside of a run: it has %q", body)
	}
}

// Two lists of parts with the same text have two digests.
func TestDigestKnowsItsParts(t *testing.T) {
	if Digest([]byte("ab"), []byte("c")) == Digest([]byte("a"), []byte("bc")) || Digest([]byte("a")) == Digest([]byte("a"), nil) {
		t.Error("they are the same")
	}
}

// BenchmarkStore keeps and reads 1,000 entries of 20 kB, some of what a cluster renders to, beside a file for each of them.
func BenchmarkStore(b *testing.B) {
	const entries = 1000
	body := bytes.Repeat([]byte("0123456789abcdef"), 1250)
	keys := make([]Key, entries)
	for i := range keys {
		keys[i] = Digest([]byte(fmt.Sprint(i)))
	}
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			s := New(b.TempDir())
			done := s.Use()
			for _, k := range keys {
				s.Put(k, body)
			}
			done()
			done = s.Use()
			for _, k := range keys {
				if _, ok := s.Get(k); !ok {
					b.Fatal("it is not there")
				}
			}
			done()
		}
	})
	b.Run("files", func(b *testing.B) {
		for b.Loop() {
			dir := b.TempDir()
			for i := range keys {
				name := filepath.Join(dir, fmt.Sprint(i))
				if err := os.WriteFile(name+".new", body, 0o600); err != nil {
					b.Fatal(err)
				}
				if err := os.Rename(name+".new", name); err != nil {
					b.Fatal(err)
				}
			}
			for i := range keys {
				if _, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
