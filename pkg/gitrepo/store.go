package gitrepo

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// bounded is a store that returns no object which is larger than any that fleetctl fetches: git may have fetched it, and it would be read
// into memory.
//
// It also finds what others add to the repository meanwhile. git, an editor that fetches, or another fleetctl may write a pack, and `git gc`
// moves all objects into another one. go-git reads the list of packs once, and then says of what is in a new pack that it is not there.
type bounded struct {
	*filesystem.Storage

	mutex sync.Mutex
	packs []plumbing.Hash // those that were there when an object was last missing
}

// EncodedObject implements storer.EncodedObjectStorer. The error for a larger object matches within.ErrTooLarge.
func (b *bounded) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := again(b, func() (plumbing.EncodedObject, error) { return b.Storage.EncodedObject(kind, hash) })
	if err == nil && o.Size() > objectLimit() {
		return nil, diag.Errorf("`"+diag.ShellCommand("git", "rev-list", "--objects", "--all")+"` names its file: keep the file in Git LFS, or elsewhere",
			"the object %s is %w: it has %d MiB, and fleetctl reads at most %d", hash, within.ErrTooLarge, o.Size()>>20, maxObject>>20)
	}
	return o, err
}

// DeltaObject implements storer.DeltaObjectStorer.
func (b *bounded) DeltaObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return again(b, func() (plumbing.EncodedObject, error) { return b.Storage.DeltaObject(kind, hash) })
}

// HasEncodedObject implements storer.EncodedObjectStorer.
func (b *bounded) HasEncodedObject(hash plumbing.Hash) error {
	_, err := again(b, func() (struct{}, error) { return struct{}{}, b.Storage.HasEncodedObject(hash) })
	return err
}

// EncodedObjectSize implements storer.EncodedObjectStorer.
func (b *bounded) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	return again(b, func() (int64, error) { return b.Storage.EncodedObjectSize(hash) })
}

// again reads an object, and once more if it was missing and others have changed the packs meanwhile, as git does.
func again[T any](b *bounded, read func() (T, error)) (T, error) {
	const attempts = 5 // each needs another change of the packs within the time of one
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for attempt := 1; ; attempt++ {
		got, err := read()
		if !isMissing(err) || attempt == attempts || !b.repacked(err) {
			return got, err
		}
		b.Reindex()
	}
}

// isMissing tells whether an error says that an object, or the pack that had it, is not there.
func isMissing(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, dotgit.ErrPackfileNotFound) || errors.Is(err, fs.ErrNotExist)
}

// repacked tells whether the packs have changed since an object was last missing. A pack that go-git knows and does not find is a change.
func (b *bounded) repacked(missing error) bool {
	packs, err := b.ObjectPacks()
	if err != nil {
		return false // the error of the object says more
	}
	changed := !errors.Is(missing, plumbing.ErrObjectNotFound) || b.packs == nil || !slices.Equal(packs, b.packs)
	b.packs = append([]plumbing.Hash{}, packs...)
	return changed
}

// ReadDir implements billy.Filesystem. It leaves out packs that have no index: git gives a pack its index last, and knows it from then on.
// go-git takes each pack for complete.
func (w *durable) ReadDir(name string) ([]fs.FileInfo, error) {
	entries, err := w.Filesystem.ReadDir(name)
	if err != nil || path.Clean(filepath.ToSlash(name)) != "objects/pack" {
		return entries, err
	}
	indexed := map[string]bool{}
	for _, entry := range entries {
		if base, is := strings.CutSuffix(entry.Name(), ".idx"); is {
			indexed[base] = true
		}
	}
	return slices.DeleteFunc(entries, func(entry fs.FileInfo) bool {
		base, is := strings.CutSuffix(entry.Name(), ".pack")
		return is && !indexed[base]
	}), nil
}
