package snapshot

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Shelf keeps files by name somewhere beyond this machine: a branch of a Git remote, a repository of a registry. See gitrepo.Shelf and
// bundle.Shelf.
type Shelf interface {
	String() string
	// Write puts a file there, whole or not at all.
	Write(ctx context.Context, name string, content []byte) error
	// Names of the files, those of others among them.
	Names(ctx context.Context) ([]string, error)
	// Read returns a file of at most that many bytes; fs.ErrNotExist where there is none.
	Read(ctx context.Context, name string, most int64) ([]byte, error)
	// Delete takes a file away; that it is gone already is no error.
	Delete(ctx context.Context, name string) error
}

// shelved is a Place on a shelf. A file is called as the management cluster, a dot, and the snapshot: the name of a cluster has no dot.
type shelved struct {
	shelf   Shelf
	cluster string
}

// OnShelf is the place for the snapshots of a management cluster on a shelf, which may have those of others, too.
func OnShelf(shelf Shelf, cluster string) (Place, error) {
	if cluster == "" || strings.ContainsAny(cluster, "./\\") {
		return nil, fmt.Errorf("%.80q cannot be the name of a management cluster", cluster)
	}
	return &shelved{shelf, cluster}, nil
}

func (s *shelved) String() string { return s.shelf.String() }

func (s *shelved) name(id string) string { return s.cluster + "." + id }

// Save implements Place.
func (s *shelved) Save(ctx context.Context, id string, sealed []byte) error {
	if !ValidID(id) {
		return fmt.Errorf("%.80q is no name of a snapshot", id)
	}
	return s.shelf.Write(ctx, s.name(id), sealed)
}

// List implements Place.
func (s *shelved) List(ctx context.Context) ([]string, error) {
	names, err := s.shelf.Names(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range names {
		if id, is := strings.CutPrefix(name, s.cluster+"."); is && ValidID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Load implements Place.
func (s *shelved) Load(ctx context.Context, id string) ([]byte, error) {
	if !ValidID(id) {
		return nil, fmt.Errorf("%.80q is no name of a snapshot: %w", id, fs.ErrNotExist)
	}
	return s.shelf.Read(ctx, s.name(id), maxSize)
}

// Remove implements Place.
func (s *shelved) Remove(ctx context.Context, id string) error {
	if !ValidID(id) {
		return fmt.Errorf("%.80q is no name of a snapshot", id)
	}
	return s.shelf.Delete(ctx, s.name(id))
}
