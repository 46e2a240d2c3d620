package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Change is one file to write or delete.
type Change struct {
	// Path relative to the top of the repository, with slashes.
	Path string
	// Content to write, in the form of the files of Copy. Lines may end with LF or CRLF.
	Content []byte
	// Replace overwrites uncommitted edits of the file, on disk and in the index. Without it, they are merged with the change.
	Replace bool
	// Executable sets the file's mode to 0755 instead of 0644. An existing file that stays a file keeps its mode if this is false.
	Executable bool
	// Delete removes the file. A missing file is no error.
	Delete bool

	// entry is the file's entry in the tree. It replaces Content.
	entry *object.TreeEntry
}

// tree adds the objects of the tree at hash that the tree at base lacks.
func (c *collection) tree(ctx context.Context, hash, base plumbing.Hash) error {
	if hash == base || !c.add(hash) {
		return ctx.Err()
	}
	entries, err := readTree(c.store, hash)
	if err != nil {
		return err
	}
	old, err := readTree(c.store, base)
	if err != nil {
		return err
	}
	for name, e := range entries {
		was := old[name]
		if e.Hash == was.Hash {
			continue
		}
		switch e.Mode {
		case filemode.Submodule: // its commit is in another repository
		case filemode.Dir:
			if was.Mode != filemode.Dir {
				was.Hash = plumbing.ZeroHash
			}
			if err := c.tree(ctx, e.Hash, was.Hash); err != nil {
				return err
			}
		default:
			c.add(e.Hash)
		}
	}
	return nil
}

// readTree returns the entries of a tree by name. The zero hash is the empty tree.
func readTree(store storage.Storer, hash plumbing.Hash) (map[string]object.TreeEntry, error) {
	entries := map[string]object.TreeEntry{}
	if hash.IsZero() {
		return entries, nil
	}
	t, err := object.GetTree(store, hash)
	if err != nil {
		return nil, here(err)
	}
	for _, e := range t.Entries {
		entries[e.Name] = e
	}
	return entries, nil
}

// checkPath returns an error for a path that must not be written into a working tree on one of the systems that may check it out.
func checkPath(p string) error {
	bad := p == "" || path.Clean(p) != p || !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\\x00\n")
	for part := range strings.SplitSeq(p, "/") {
		// git itself refuses these too: they are other names of .git on Windows and macOS.
		name := strings.ToLower(strings.TrimRight(strings.Map(unseenByHFS, part), ". "))
		bad = bad || name == ".git" || name == "git~1" || strings.HasPrefix(name, ".git:")
	}
	if bad {
		return fmt.Errorf("%w %q", ErrPath, p)
	}
	return nil
}

// unseenByHFS drops the characters that the file system of macOS ignores in names.
func unseenByHFS(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}

// applyChanges writes blobs and trees for base plus changes and returns the new root tree. It returns base itself if nothing
// changes.
func applyChanges(store storage.Storer, base plumbing.Hash, changes []Change) (plumbing.Hash, error) {
	root := &node{}
	for _, c := range changes {
		if err := checkPath(c.Path); err != nil {
			return plumbing.ZeroHash, err
		}
		root.add(strings.Split(c.Path, "/"), c)
	}
	hash, err := root.write(store, "", base)
	if err != nil || !hash.IsZero() {
		return hash, err
	}
	return writeTree(store, nil) // the empty tree: a commit needs one
}

// node is a folder with changes in it.
type node struct {
	files   map[string]Change
	folders map[string]*node
}

func (n *node) add(parts []string, c Change) {
	name := parts[0]
	if len(parts) == 1 {
		if n.files == nil {
			n.files = map[string]Change{}
		}
		n.files[name] = c
		return
	}
	if n.folders == nil {
		n.folders = map[string]*node{}
	}
	if n.folders[name] == nil {
		n.folders[name] = &node{}
	}
	n.folders[name].add(parts[1:], c)
}

// write returns the new tree of the folder at dir, whose old tree is base; zero if the folder is empty now. It first writes the folders in
// which files are only deleted, then files, and then the other folders, so that a file can become a folder and vice versa.
func (n *node) write(store storage.Storer, dir string, base plumbing.Hash) (plumbing.Hash, error) {
	entries, err := readTree(store, base)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	changed := false
	for _, deleting := range []bool{true, false} {
		for name, folder := range n.folders {
			if folder.onlyDeletes() != deleting {
				continue
			}
			did, err := folder.writeInto(store, entries, dir, name)
			if err != nil {
				return plumbing.ZeroHash, err
			}
			changed = changed || did
		}
		if !deleting {
			break
		}
		for name, c := range n.files {
			did, err := writeFile(store, entries, name, c)
			if err != nil {
				return plumbing.ZeroHash, err
			}
			changed = changed || did
		}
	}
	switch {
	case !changed:
		return base, nil
	case len(entries) == 0:
		return plumbing.ZeroHash, nil
	}
	return writeTree(store, entries)
}

// writeInto writes the folder called name into the entries of its parent, and tells whether that changed them.
func (n *node) writeInto(store storage.Storer, entries map[string]object.TreeEntry, dir, name string) (bool, error) {
	was, there := entries[name]
	if there && was.Mode != filemode.Dir {
		if n.onlyDeletes() {
			return false, nil
		}
		return false, fmt.Errorf("%w %q: it is no folder in the repository", ErrPath, path.Join(dir, name))
	}
	hash, err := n.write(store, path.Join(dir, name), was.Hash)
	if err != nil || hash == was.Hash {
		return false, err
	}
	if hash.IsZero() {
		delete(entries, name)
		return true, nil
	}
	entries[name] = object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
	return true, nil
}

func (n *node) onlyDeletes() bool {
	for _, c := range n.files {
		if !c.Delete {
			return false
		}
	}
	for _, f := range n.folders {
		if !f.onlyDeletes() {
			return false
		}
	}
	return true
}

func writeFile(store storage.Storer, entries map[string]object.TreeEntry, name string, c Change) (bool, error) {
	was, there := entries[name]
	if c.Delete {
		if there && was.Mode == filemode.Dir {
			return false, nil // the change is about a file, and this is a folder
		}
		delete(entries, name)
		return there, nil
	}
	if there && (was.Mode == filemode.Dir || was.Mode == filemode.Submodule) {
		return false, fmt.Errorf("%w %q: it is a folder in the repository", ErrPath, c.Path)
	}
	if c.entry != nil {
		owe(store, c.entry.Hash) // git has written this object for a hook
		entries[name] = object.TreeEntry{Name: name, Mode: c.entry.Mode, Hash: c.entry.Hash}
		return was.Hash != c.entry.Hash || was.Mode != c.entry.Mode, nil
	}
	if there && was.Mode == filemode.Symlink {
		return false, diag.Errorf("change the target of the link, or replace the link by a file",
			"%w %q: it is a symbolic link in the repository", ErrPath, c.Path)
	}
	hash, err := writeBlob(store, c.Content)
	if err != nil {
		return false, err
	}
	mode := filemode.Regular
	if c.Executable || there && was.Mode == filemode.Executable {
		mode = filemode.Executable
	}
	entries[name] = object.TreeEntry{Name: name, Mode: mode, Hash: hash}
	return was.Hash != hash || was.Mode != mode, nil
}

func writeBlob(store storage.Storer, content []byte) (plumbing.Hash, error) {
	o := store.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	_, err = w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		return plumbing.ZeroHash, err
	}
	return saveObject(store, o)
}

func writeTree(store storage.Storer, entries map[string]object.TreeEntry) (plumbing.Hash, error) {
	t := &object.Tree{}
	for _, e := range entries {
		t.Entries = append(t.Entries, e)
	}
	sort.Sort(object.TreeEntrySorter(t.Entries))
	o := store.NewEncodedObject()
	if err := t.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return saveObject(store, o)
}

// saveObject saves an object unless the store has it: go-git would write it again as a loose object.
func saveObject(store storage.Storer, o plumbing.EncodedObject) (plumbing.Hash, error) {
	if store.HasEncodedObject(o.Hash()) == nil {
		owe(store, o.Hash())
		return o.Hash(), nil
	}
	hash, err := store.SetEncodedObject(o)
	if disk := diskOf(store); disk != nil && err != nil {
		err = errors.Join(err, disk.dropTemps()) // so that retries do not fill a full disk further
	}
	return hash, err
}

// owe notes that an existing object has to be flushed to disk before a reference names it.
func owe(store storage.Storer, hash plumbing.Hash) {
	if disk := diskOf(store); disk != nil {
		disk.oweObject(hash)
	}
}

// diskStore is a store whose files are in a folder.
type diskStore interface{ Filesystem() billy.Filesystem }

// diskOf returns the folder of a store; nil if the store is in memory.
func diskOf(store storage.Storer) *durable {
	if s, ok := store.(diskStore); ok {
		if disk, ok := s.Filesystem().(*durable); ok {
			return disk
		}
	}
	return nil
}

// file is one entry of a flattened tree.
type file struct {
	mode filemode.FileMode
	hash plumbing.Hash
}
