package state

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const folderHint = "point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write"

// Fleet identifies a fleet's private files. Names collide, so the files are stored by the identity. A fleet without an identity, and files
// that are older than identities, are stored by name.
type Fleet struct{ ID, Name string }

// file has a folder of its own for identities: no name can be taken for one.
func (f Fleet) file(ending string) string {
	if f.ID != "" {
		return filepath.Join("keys", "fleets", f.ID+ending)
	}
	return filepath.Join("keys", f.Name+ending)
}

// KeyFile is the private file with the age keys of a fleet. It is no cluster's: what is encrypted in Git outlives them.
func (s Store) KeyFile(fleet Fleet) string { return filepath.Join(s.Dir, fleet.file(".agekey")) }

// WriteKeys replaces the file with the age keys of a fleet, atomically, for this user alone. A caller that changes the existing content has
// to hold LockKeys.
func (s Store) WriteKeys(fleet Fleet, content []byte) error {
	if err := s.privateFolder(filepath.Dir(s.KeyFile(fleet))); err != nil {
		return diag.Wrap("create the folder for keys", err, folderHint)
	}
	if err := CheckOwner(s.KeyFile(fleet)); err != nil {
		return err
	}
	return atomicfile.Write(s.KeyFile(fleet), content, 0o600)
}

// LockKeys waits until no other process of this user reads and changes the age keys of a fleet. The operating system releases the lock with
// the process.
func (s Store) LockKeys(ctx context.Context, fleet Fleet) (unlock func(), err error) {
	return s.lock(ctx, "the age keys of "+fleet.Name, fleet.file(".agekey.lock"))
}

// LockSecrets waits until no other process of this user encrypts files of a fleet anew. LockKeys may be taken while it is held.
func (s Store) LockSecrets(ctx context.Context, fleet Fleet) (unlock func(), err error) {
	return s.lock(ctx, "the secrets of "+fleet.Name, fleet.file(".secrets.lock"))
}

func (s Store) lock(ctx context.Context, what, name string) (func(), error) {
	const poll = 20 * time.Millisecond // a file lock cannot be waited for in another way that a context could end
	path := filepath.Join(s.Dir, name)
	if err := s.privateFolder(filepath.Dir(path)); err != nil {
		return nil, diag.Wrap("lock "+what, err, folderHint)
	}
	lock := flock.New(path)
	if _, err := lock.TryLockContext(ctx, poll); err != nil {
		return nil, diag.Wrap("lock "+what, err, "another fleetctl works with them; wait for it to end")
	}
	return func() { _ = lock.Unlock() }, nil
}

// editsDir holds what was edited and did not get to its place.
const editsDir = "edits"

// KeepEdit writes an edited file of the fleet repo, which is encrypted, to a separate private file. It returns the path of the private
// file.
func (s Store) KeepEdit(fleet Fleet, file string, content []byte) (string, error) {
	dir := s.edits(fleet)
	if err := s.privateFolder(dir); err != nil {
		return "", err
	}
	_ = atomicfile.Sweep(dir) // each edit has a name of its own, and would leave what a killed run left of another
	path := filepath.Join(dir, editPrefix(file)+strings.ToLower(rand.Text()[:8])+editEnding)
	return path, atomicfile.Write(path, content, 0o600)
}

// editEnding ends the names of kept edits.
const editEnding = ".age"

// editPrefix begins the names of the kept edits of a file: its name, for people, and a digest of its path, because others have that name
// too.
func editPrefix(file string) string {
	stem, _, _ := strings.Cut(filepath.Base(filepath.FromSlash(file)), ".")
	digest := sha256.Sum256([]byte(file))
	return fmt.Sprintf("%s-%x", stem, digest[:4])
}

// KeptEdits are the files that KeepEdit has made of a file of the fleet repo, and that are still there.
func (s Store) KeptEdits(fleet Fleet, file string) ([]string, error) {
	dir := s.edits(fleet)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), editPrefix(file)) && strings.HasSuffix(e.Name(), editEnding) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}

// edits is the folder for what was edited in a fleet's repo. As with keys, no name can be taken for an identity.
func (s Store) edits(fleet Fleet) string {
	if fleet.ID != "" {
		return filepath.Join(s.Dir, editsDir, "fleets", fleet.ID)
	}
	return filepath.Join(s.Dir, editsDir, fleet.Name)
}

// DropEdit removes a file that KeepEdit made for a fleet, also before that had an identity. Any other one stays.
func (s Store) DropEdit(fleet Fleet, path string) error {
	if dir, err := filepath.Abs(filepath.Dir(path)); err != nil || dir != s.edits(fleet) && dir != s.edits(Fleet{Name: fleet.Name}) {
		return err
	}
	return os.Remove(path)
}

// privateFolder makes a folder that only its owner can read.
func (s Store) privateFolder(dir string) error {
	if err := s.checkFolders(dir); err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) //nolint:gosec // a folder needs its x
}
