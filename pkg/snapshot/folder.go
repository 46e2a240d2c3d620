package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Place keeps the snapshots of one management cluster.
type Place interface {
	// String returns the place as the user has written it.
	String() string
	// Save stores a snapshot under its ID. After an error, the place has no part of the snapshot.
	Save(ctx context.Context, id string, sealed []byte) error
	// List returns the IDs of all snapshots in the place, the oldest first.
	List(ctx context.Context) ([]string, error)
	// Load reads a snapshot. The error is fs.ErrNotExist if the place has no snapshot of that ID.
	Load(ctx context.Context, id string) ([]byte, error)
	// Remove removes a snapshot. It succeeds if the place has no snapshot of that ID.
	Remove(ctx context.Context, id string) error
}

// ending of the files.
const ending = ".snapshot.age"

// Folder is a place in a file system that outlives the management cluster's host: a mounted volume, a share. Each management cluster has a
// folder below.
type Folder struct{ root, cluster string }

// NewFolder is the place for the snapshots of a management cluster below root. It changes nothing.
func NewFolder(root, cluster string) (*Folder, error) {
	if cluster != filepath.Base(cluster) || strings.HasPrefix(cluster, ".") {
		return nil, fmt.Errorf("%.80q cannot be the name of a management cluster", cluster)
	}
	root, err := filepath.Abs(root)
	return &Folder{root, cluster}, err
}

func (f *Folder) String() string { return f.root }

func (f *Folder) dir() string { return filepath.Join(f.root, f.cluster) }

// IsNew tells whether the folder of the management cluster does not exist yet, so that Save would make it.
func (f *Folder) IsNew() bool {
	_, err := os.Stat(f.dir())
	return errors.Is(err, fs.ErrNotExist)
}

// Save implements Place.
func (f *Folder) Save(_ context.Context, id string, sealed []byte) error {
	const hint = "give a folder that you can write"
	if err := atomicfile.MkdirAll(f.dir(), 0o700); err != nil {
		return diag.Wrap("keep the snapshot "+id, err, hint)
	}
	if _, err := f.entries(); err != nil {
		return diag.Wrap("keep the snapshot "+id, err, diag.Hint(err))
	}
	_ = atomicfile.Sweep(f.dir()) // the remains of a run that was killed, which are no reason to take no snapshot
	return diag.Wrap("keep the snapshot "+id, atomicfile.Write(filepath.Join(f.dir(), id+ending), sealed, 0o600), hint)
}

// List implements Place.
func (f *Folder) List(context.Context) ([]string, error) {
	entries, err := f.entries()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, is := strings.CutSuffix(e.Name(), ending); is && ValidID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// entries lists the folder of the management cluster. It follows no link out of the place, as Load does not: what is kept behind one could
// not be read again.
func (f *Folder) entries() ([]fs.DirEntry, error) {
	entries, err := within.ReadDir(f.root, f.cluster)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return entries, err
	}
	hint := "look whether this is the right folder, whether it is mounted, and whether you can read it"
	if target, linkErr := os.Readlink(f.dir()); linkErr == nil {
		hint = fmt.Sprintf("%s is a link to %.200q, and no link out of the place is followed: make it a folder, or name the place of a folder "+
			"that is called %s", f.dir(), target, f.cluster)
	}
	return nil, diag.Wrap("look for snapshots in "+f.root, err, hint)
}

// Load implements Place.
func (f *Folder) Load(_ context.Context, id string) ([]byte, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("%.80q is no name of a snapshot: %w", id, fs.ErrNotExist)
	}
	return within.ReadFile(f.root, filepath.Join(f.cluster, id+ending), maxSize)
}

// Remove implements Place.
func (f *Folder) Remove(_ context.Context, id string) error {
	if !ValidID(id) {
		return fmt.Errorf("%.80q is no name of a snapshot", id)
	}
	if _, err := f.entries(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	err := os.Remove(filepath.Join(f.dir(), id+ending))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return diag.Wrap("remove the snapshot "+id, err, "")
}
