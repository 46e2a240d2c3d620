package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// converter returns the conversions between commits and the files of the working tree, as git makes them.
func (r *Repo) converter(root *os.Root, all settings) (*conversion.Converter, error) {
	own := userConfig("attributes")
	if named := all["core.attributesfile"]; named != "" {
		own = expand(named, filepath.Join(r.dir, "x"))
	}
	p := conversion.Place{
		Root: root, Settings: conversion.Settings(all), Global: []string{"/etc/gitattributes", own},
		Info: filepath.Join(r.commonDir(), "info", "attributes"), Blobs: blobs{r.git.Storer}, Untrusted: r.untrusted,
	}
	if gitProgram() != "" {
		p.Git = func(ctx context.Context, input []byte, args ...string) ([]byte, error) {
			return r.runGit(ctx, nil, input, args...)
		}
	}
	return conversion.New(p)
}

// blobs reads file contents from an object store.
type blobs struct{ store storage.Storer }

func (b blobs) Read(hash plumbing.Hash) ([]byte, error) { return readBlob(b.store, hash) }

func (b blobs) Wrote(hash plumbing.Hash) { owe(b.store, hash) }

// readBlob returns the content of a file in the object store; nil for the zero hash. The error for a file that is larger than any that
// fleetctl fetches matches within.ErrTooLarge.
func readBlob(store storage.Storer, hash plumbing.Hash) ([]byte, error) {
	if hash.IsZero() {
		return nil, nil
	}
	blob, err := object.GetBlob(store, hash)
	if err != nil {
		return nil, here(err)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	read, err := within.All(reader, "the object "+hash.String(), objectLimit()) // which may say another size of itself
	return read, errors.Join(err, reader.Close())
}

// keepLineEnds gives the new content on disk the line ends that the file has there, if git would make the same commit of it. An editor
// leaves these line ends too. hash is the blob that git has to make of the file.
func (w *worktree) keepLineEnds(ctx context.Context, s *step, hash plumbing.Hash) error {
	if s.before.mode == filemode.Empty || s.before.mode == filemode.Symlink || w.conv.NeedsGit(w.conv.Found(s.path)) {
		return nil
	}
	kept, ok := conversion.LikeThere(s.content, s.before.content)
	if !ok {
		return nil
	}
	cleaned, err := w.clean(ctx, s.path, kept, s.from)
	if err == nil && plumbing.ComputeHash(plumbing.BlobObject, cleaned) == hash {
		s.content = kept
	}
	return err
}

// readIfThere returns the content of a file that a configuration names; nil if it does not exist.
func readIfThere(name string) ([]byte, error) {
	read, err := within.Named(name, 100<<20)
	if errors.Is(err, fs.ErrNotExist) || name == "" {
		return nil, nil
	}
	return read, err
}
