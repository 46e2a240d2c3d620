package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// step moves one file of the working tree and of the index from one commit to another, and keeps the user's edits.
type step struct {
	treeChange
	// mine says that the caller makes the change, and that it does not come from somebody else's commit. replace says that the new content
	// replaces the file on disk, also if the user has edited that file.
	mine, replace bool

	// The file on disk before the step, and what the step does there.
	before         onDisk
	write, remove  bool
	content        []byte
	mode           filemode.FileMode
	stands         plumbing.Hash // the blob that git will make of the file on disk; zero if unknown
	entry          file          // for the index
	set, dropEntry bool
}

// onDisk is a file on disk. If mode is empty, there is no file.
type onDisk struct {
	mode    filemode.FileMode
	content []byte
}

// apply carries the steps out on disk. Deletions come first, so that a file can become a folder.
func (w *worktree) apply(ctx context.Context, steps []*step) error {
	var removed []string
	var files []diskFile
	for _, s := range steps {
		if s.write {
			files = append(files, diskFile{s.path, s.content, s.mode})
		}
		if !s.remove {
			continue
		}
		if err := errors.Join(ctx.Err(), w.remove(s.path)); err != nil {
			return fmt.Errorf("remove %s: %w", s.path, err)
		}
		removed = append(removed, s.path)
	}
	if err := w.put(ctx, files...); err != nil {
		return err
	}
	return w.flushRemoval(removed)
}

// undo restores the files on disk as they were before the steps.
func (w *worktree) undo(ctx context.Context, steps []*step) error {
	var errs []error
	var removed []string
	var files []diskFile
	for _, s := range steps {
		switch {
		case !s.write && !s.remove:
		case s.before.mode != filemode.Empty:
			files = append(files, diskFile{s.path, s.before.content, s.before.mode})
		case s.write:
			errs = append(errs, w.remove(s.path))
			removed = append(removed, s.path)
		}
	}
	errs = append(errs, w.put(ctx, files...), w.flushRemoval(removed))
	return errors.Join(errs...)
}

// flushRemoval flushes the folders of removed files, so that the removal survives a power cut.
func (w *worktree) flushRemoval(paths []string) error {
	folders := map[string]bool{}
	for _, p := range paths {
		for _, dir := range foldersOfNew(w.root, filepath.FromSlash(p)) { // folders may be removed with their last file
			folders[dir] = true
		}
	}
	return atomicfile.SyncFolders(w.root, slices.Collect(maps.Keys(folders))...)
}

// enter updates the index with the entries of the steps.
func (w *worktree) enter(l *lock, steps []*step) {
	for _, s := range steps {
		old := l.entries[s.path]
		switch {
		case s.dropEntry && old != nil:
			delete(l.entries, s.path)
			l.changed = true
		case s.set:
			e := &index.Entry{Name: s.path, Hash: s.entry.hash, Mode: s.entry.mode}
			if old != nil {
				e.SkipWorktree = old.SkipWorktree
			}
			// If the file on disk may differ from the entry, leave the file's times out of the index, so that git reads the file.
			if info, err := w.root.Lstat(filepath.FromSlash(s.path)); err == nil && s.stands == s.entry.hash && !info.IsDir() {
				setStat(e, info)
			}
			l.entries[s.path] = e
			l.changed = true
		}
	}
}

// setStat sets the times and the size in the index entry of a file that equals its entry, so that git need not read the file.
func setStat(e *index.Entry, info fs.FileInfo) {
	e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size()) //nolint:gosec // git keeps the lower 32 bits too
	setSystemStat(e, info)
}
