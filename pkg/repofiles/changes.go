package repofiles

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Changes are repoFiles as gitrepo commits them, where root has what is committed, with what is encrypted.
func (c *Content) Changes(ctx context.Context, root string) ([]gitrepo.Change, error) {
	changes, err := ChangesOf(ctx, c.Session, root, c.repoFiles)
	if err != nil {
		return nil, err
	}
	encrypted, err := c.secretFiles(ctx, root)
	return slices.Concat(changes, encrypted, endedNoMore(c.Session, root)), err
}

// endedNoMore removes the note that an earlier management cluster of the name has ended.
func endedNoMore(s *session.Session, root string) []gitrepo.Change {
	note := s.Layout().Ended(s.Mgmt.Name)
	if !within.Exists(root, note) {
		return nil
	}
	return []gitrepo.Change{{Path: note, Delete: true}}
}

// wantedFiles are files that a fleet repo at root is to have; present tells what is there already.
type wantedFiles func(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error)

// ChangesOf are files and the fleet's identity as gitrepo commits them. A person's own file in no commit stays as it is; one that is just
// what would be written is left from an earlier run.
func ChangesOf(ctx context.Context, s *session.Session, root string, wanted wantedFiles) ([]gitrepo.Change, error) {
	files, err := wanted(ctx, root, func(f manifest.File) bool {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(f.Path))); err == nil {
			return true
		}
		content, err := within.ReadFile(s.Opts.Dir, f.Path, fleetrepo.MaxFile)
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		return !bytes.Equal(content, f.Content)
	})
	if err != nil {
		return nil, err
	}
	changes := make([]gitrepo.Change, 0, len(files))
	for _, f := range files {
		// The cluster is made from fleet.yaml as it stands on disk.
		changes = append(changes, gitrepo.Change{Path: f.Path, Content: f.Content, Replace: f.Path == v1alpha1.FileName})
	}
	identity, err := s.IdentityFile(root)
	return append(changes, identity...), err
}
