package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Shelf keeps files in a branch of a remote repository that has no other files. The branch is one commit without a history. So a deleted
// file is gone, once the server removes objects that no branch has. A Shelf uses no working tree.
type Shelf struct {
	remote *remote
	url    string
	branch string
}

// NewShelf returns the shelf in a branch of the remote repository. It does not connect.
func NewShelf(url, branch string, auth Auth) (*Shelf, error) {
	if err := plumbing.NewBranchReferenceName(branch).Validate(); err != nil || strings.HasPrefix(branch, "-") {
		return nil, diag.Usage("give the name of a branch", "%.80q cannot be the name of a branch", branch)
	}
	r, err := openNamed(url, auth)
	if err != nil {
		return nil, err
	}
	return &Shelf{remote: r, url: display(r.endpoint), branch: branch}, nil
}

// String returns the branch and the repository, without credentials.
func (s *Shelf) String() string { return "branch " + s.branch + " of " + s.url }

// shelfName matches the names of the files in a Shelf: a name, a dot, a time and a few letters. A branch with any other file has another
// use.
var shelfName = regexp.MustCompile(`^[a-z0-9-]+\.[0-9]{8}T[0-9]{6}Z-[a-z0-9]+$`)

// shelved is the content of the branch at one moment.
type shelved struct {
	store   *memory.Storage
	head    plumbing.Hash // zero if there is no such branch
	entries map[string]object.TreeEntry
}

func (s *Shelf) look(ctx context.Context) (*shelved, error) {
	found := &shelved{store: memory.NewStorage(), entries: map[string]object.TreeEntry{}}
	got, err := s.remote.fetch(ctx, found.store, s.branch, nil)
	if err != nil {
		return nil, s.remote.fail("read the branch "+s.branch+" of", err)
	}
	if found.head = got.head; found.head.IsZero() {
		return found, nil
	}
	commit, err := object.GetCommit(found.store, found.head)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	if found.entries, err = readTree(found.store, commit.TreeHash); err != nil {
		return nil, fmt.Errorf("read %s: %w", s, err)
	}
	for name, e := range found.entries {
		if e.Mode != filemode.Regular || !shelfName.MatchString(name) {
			return nil, diag.Errorf("if the branch is for snapshots, remove the file from it; if not, name another one: branch:fleetctl-snapshots",
				"%s is no branch of snapshots: it has the file %.80q", s, name)
		}
	}
	return found, nil
}

// room returns an error for a file that is too large for the branch, by itself or together with the present files: fleetctl would refuse to
// read such a branch again.
func (f *shelved) room(size uint64) error {
	const trees = 1 << 20 // a commit and a tree come along
	if size > maxObject {
		return fmt.Errorf("it has %d MiB, and a file in a branch may have at most %d", size>>20, maxObject>>20)
	}
	for name, e := range f.entries {
		there, err := f.store.EncodedObjectSize(e.Hash)
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		size += uint64(max(there, 0))
	}
	if size+trees > maxInMemory {
		return fmt.Errorf("together with the present files, the branch would have %d MiB, and may have at most %d", size>>20, maxInMemory>>20)
	}
	return nil
}

// Names returns the names of the files, sorted.
func (s *Shelf) Names(ctx context.Context) ([]string, error) {
	found, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(found.entries)), nil
}

// Read returns a file whose size is at most the given number of bytes. The error matches fs.ErrNotExist if there is no such file.
func (s *Shelf) Read(ctx context.Context, name string, most int64) ([]byte, error) {
	found, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	entry, ok := found.entries[name]
	if !ok {
		return nil, fmt.Errorf("%s has no file %s: %w", s, name, fs.ErrNotExist)
	}
	blob, err := object.GetBlob(found.store, entry.Hash)
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, s, err)
	}
	if blob.Size > most {
		return nil, fmt.Errorf("%s in %s has more than %d MiB", name, s, most>>20)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(reader, most))
	return content, errors.Join(err, reader.Close())
}

// Write adds or replaces a file, completely or not at all. It returns an error if the branch would become too large to be read again.
func (s *Shelf) Write(ctx context.Context, name string, content []byte) error {
	return s.change(ctx, "Keep "+name, func(found *shelved) (*plumbing.Hash, error) {
		if err := found.room(uint64(len(content))); err != nil {
			return nil, diag.Wrap("keep "+name+" in "+s.String(), err, "keep snapshots in a folder or in a registry, where they may be larger")
		}
		hash, err := writeBlob(found.store, content)
		found.entries[name] = object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: hash}
		return &hash, err
	})
}

// Delete removes a file. A missing file is no error.
func (s *Shelf) Delete(ctx context.Context, name string) error {
	return s.change(ctx, "Remove "+name, func(found *shelved) (*plumbing.Hash, error) {
		if _, there := found.entries[name]; !there {
			return nil, errNothingToDo
		}
		delete(found.entries, name)
		return nil, nil
	})
}

var errNothingToDo = errors.New("nothing to do")

// shelfTries bounds how often a change is retried because somebody else has moved the branch.
const shelfTries = 5

// change moves the branch to a new commit, if it is still at the commit that was read.
func (s *Shelf) change(ctx context.Context, message string, edit func(*shelved) (added *plumbing.Hash, err error)) error {
	var err error
	for range shelfTries {
		var found *shelved
		if found, err = s.look(ctx); err != nil {
			return err
		}
		before := found.head
		added, editErr := edit(found)
		if errors.Is(editErr, errNothingToDo) {
			return nil
		}
		if editErr != nil {
			return editErr
		}
		err = s.put(ctx, found, before, added, message, nil)
		// If the server does not let one commit replace another, push the new commit on top of the old one. If this fails too, somebody
		// else was faster.
		if !before.IsZero() && (errors.Is(err, ErrProtectedBranch) || errors.Is(err, ErrNonFastForward)) {
			err = s.put(ctx, found, before, added, message, []plumbing.Hash{before})
		}
		if errors.Is(err, ErrProtectedBranch) { // the hint of the error itself is about the branch that has the fleet
			return diag.Wrap("", err, "allow this account to push to the branch "+s.branch+", also by force and with deletions; or keep the "+
				"snapshots elsewhere: spec.snapshots.to in fleet.yaml, or the flag of this command")
		}
		if !errors.Is(err, ErrNonFastForward) {
			return err
		}
	}
	return err
}

// put pushes the content of found as one commit.
func (s *Shelf) put(
	ctx context.Context,
	found *shelved,
	before plumbing.Hash,
	added *plumbing.Hash,
	message string,
	parents []plumbing.Hash,
) error {
	tree, err := writeTree(found.store, found.entries)
	if err != nil {
		return err
	}
	by := object.Signature{Name: "fleetctl", Email: "fleetctl@localhost", When: time.Now()}
	commit, err := writeCommit(ctx, found.store, nil, tree, parents, message+"\n", identity{author: by, committer: by})
	if err != nil {
		return err
	}
	objects := []plumbing.Hash{commit, tree}
	if added != nil {
		objects = append(objects, *added)
	}
	return s.remote.moveBranch(ctx, "push snapshots to", s.branch, found.store, update{old: before, new: commit, objects: objects})
}
