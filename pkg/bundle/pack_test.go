package bundle

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

func TestPack(t *testing.T) {
	dir, out := newBundle(t), t.TempDir()
	one, two := filepath.Join(out, "one.tar.zst"), filepath.Join(out, "two.tar.zst")
	must(t, Pack(t.Context(), dir, one))
	must(t, Pack(t.Context(), newBundle(t), two))
	first, err := os.ReadFile(one)
	must(t, err)
	second, err := os.ReadFile(two)
	must(t, err)
	if !bytes.Equal(first, second) {
		t.Error("the same bundle gives different archives")
	}
	b := openBundle(t, one)
	must(t, b.Verify(t.Context()))
	if diff := cmp.Diff(openBundle(t, dir).Index(), b.Index()); diff != "" {
		t.Error(diff)
	}
	if files := listFiles(t, out); len(files) != 2 {
		t.Errorf("left behind: %q", files)
	}
}

func TestPackKeepsTheOldArchive(t *testing.T) {
	out := t.TempDir()
	dest := filepath.Join(out, "b.tar.zst")
	must(t, os.WriteFile(dest, []byte("old"), 0o600))
	damaged := newBundle(t)
	flip(t, damaged, descriptorsOf(t, damaged)["layer"].Digest)
	if err := Pack(t.Context(), damaged, dest); err == nil {
		t.Error("a damaged bundle was packed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Pack(ctx, newBundle(t), dest); err == nil {
		t.Error("canceled, and no error")
	}
	if content, err := os.ReadFile(dest); err != nil || string(content) != "old" {
		t.Errorf("archive %q, %v", content, err)
	}
	if files := listFiles(t, out); len(files) != 1 {
		t.Errorf("left behind: %q", files)
	}
}

func TestOpenArchiveCleansUp(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	archive := filepath.Join(t.TempDir(), "b.tar.zst")
	must(t, Pack(t.Context(), newBundle(t), archive))
	before := len(listFiles(t, temp))
	b, err := Open(t.Context(), archive)
	must(t, err)
	if len(listFiles(t, temp)) == before {
		t.Error("not unpacked to the temporary folder")
	}
	must(t, b.Close())
	if files := listFiles(t, temp); len(files) != before {
		t.Errorf("left behind: %q", files)
	}
}

func TestCache(t *testing.T) {
	cache, archive := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "b.tar.zst")
	must(t, Pack(t.Context(), newBundle(t), archive))
	b := openBundle(t, archive, WithCache(cache))
	root := b.root.Name()
	layer := filepath.Join(root, blobPath(b.images[refApp].manifest.Layers[1].Digest))
	first, err := os.Stat(layer)
	must(t, err)

	second, err := os.Stat(filepath.Join(openBundle(t, archive, WithCache(cache)).root.Name(),
		blobPath(b.images[refApp].manifest.Layers[1].Digest)))
	must(t, err)
	if !os.SameFile(first, second) {
		t.Error("unpacked twice")
	}

	// A cached bundle that has lost a file, or that a killed run has left half unpacked, is unpacked again.
	must(t, os.Remove(layer))
	must(t, os.MkdirAll(filepath.Join(root+".partial", "blobs"), 0o755))
	must(t, openBundle(t, archive, WithCache(cache)).Verify(t.Context()))
	if _, err := os.Stat(root + ".partial"); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// Pack removes the part of an archive that a killed run has left.
func TestPackAfterAKill(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "b.tar.zst")
	must(t, os.WriteFile(atomicfile.TempName(dest), []byte("the beginning of"), 0o644))
	must(t, Pack(t.Context(), newBundle(t), dest))
	entries, err := os.ReadDir(filepath.Dir(dest))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// A cached bundle that cannot be read may be complete: it stays.
func TestCacheThatCannotBeRead(t *testing.T) {
	cache, archive := filepath.Join(t.TempDir(), "cache"), filepath.Join(t.TempDir(), "b.tar.zst")
	must(t, Pack(t.Context(), newBundle(t), archive))
	root := openBundle(t, archive, WithCache(cache)).root.Name()
	must(t, os.Rename(root, root+".aside"))
	must(t, os.Symlink(filepath.Base(root), root)) // a link to itself: opening it fails, but not with "does not exist"
	if b, err := Open(t.Context(), archive, WithCache(cache)); err == nil {
		t.Errorf("opened: %v", b.Close())
	}
	if _, err := os.Lstat(root); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}
