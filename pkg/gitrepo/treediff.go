package gitrepo

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
)

// treeChange is a path that differs between two trees. The zero file means that the tree has no such file.
type treeChange struct {
	path     string
	from, to file
}

// diffTrees returns the paths that differ between two trees, sorted. It does not read equal folders.
func diffTrees(ctx context.Context, store storage.Storer, from, to plumbing.Hash) ([]treeChange, error) {
	d := &differ{store: store}
	err := d.folder(ctx, "", from, to)
	slices.SortFunc(d.changes, func(a, b treeChange) int { return strings.Compare(a.path, b.path) })
	return d.changes, err
}

// maxPlaces bounds the files and folders of a commit: a dozen small trees, each of which has the next one ten times, stand for a billion
// files.
var maxPlaces = 1 << 19 // files and folders; a variable for tests

const maxPath = 4096 // bytes, the limit of Linux

// differ compares two trees, folder by folder.
type differ struct {
	store   storage.Storer
	changes []treeChange
	places  int
}

func (d *differ) folder(ctx context.Context, dir string, from, to plumbing.Hash) error {
	if from == to || ctx.Err() != nil {
		return ctx.Err()
	}
	old, err := readTree(d.store, from)
	if err != nil {
		return err
	}
	entries, err := readTree(d.store, to)
	if err != nil {
		return err
	}
	if d.places += len(old) + len(entries); d.places > maxPlaces {
		return fmt.Errorf("%w: more than %d files and folders differ", ErrPath, maxPlaces)
	}
	for name := range union(old, entries) {
		was, is := old[name], entries[name]
		if was.Hash == is.Hash && was.Mode == is.Mode {
			continue
		}
		var wasTree, isTree plumbing.Hash
		change := treeChange{path: path.Join(dir, name)}
		if len(change.path) > maxPath {
			return fmt.Errorf("%w: a path of more than %d bytes, which begins with %.80q", ErrPath, maxPath, change.path)
		}
		if was.Mode == filemode.Dir {
			wasTree = was.Hash
		} else {
			change.from = file{was.Mode, was.Hash}
		}
		if is.Mode == filemode.Dir {
			isTree = is.Hash
		} else {
			change.to = file{is.Mode, is.Hash}
		}
		if change.from != change.to {
			d.changes = append(d.changes, change)
		}
		if err := d.folder(ctx, change.path, wasTree, isTree); err != nil {
			return err
		}
	}
	return nil
}

func union(a, b map[string]object.TreeEntry) map[string]bool {
	names := map[string]bool{}
	for n := range a {
		names[n] = true
	}
	for n := range b {
		names[n] = true
	}
	return names
}
