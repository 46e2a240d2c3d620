package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// plan works out the steps from one tree to another, and changes nothing. The error is a *DirtyError if edits of the user, on disk or
// staged, cannot be kept.
func (r *Repo) plan(ctx context.Context, w *worktree, l *lock, from, to plumbing.Hash, intent []Change) ([]*step, error) {
	changes, err := diffTrees(ctx, r.git.Storer, from, to)
	if err != nil {
		return nil, err
	}
	wanted := map[string]Change{}
	for _, c := range intent {
		wanted[c.Path] = c
	}
	paths, leaving := make([]string, 0, len(changes)), map[string]bool{}
	for _, c := range changes {
		if err := checkPath(c.path); err != nil {
			return nil, err
		}
		leaving[c.path] = c.to.mode == filemode.Empty
		paths = append(paths, c.path)
	}
	if err := w.conv.Look(ctx, paths...); err != nil {
		return nil, err
	}
	var steps []*step
	var dirty []string
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		change, mine := wanted[c.path]
		s := &step{treeChange: c, mine: mine, replace: change.Replace}
		onDisk, err := w.planDisk(ctx, s, l.entries[c.path], leaving)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", c.path, err)
		}
		staged, err := w.planIndex(s, l.entries[c.path])
		if err != nil {
			return nil, fmt.Errorf("look at %s in the index: %w", c.path, err)
		}
		if !onDisk || !staged {
			dirty = append(dirty, c.path)
		}
		steps = append(steps, s)
	}
	return steps, dirtyError(dirty)
}

// planDisk decides what the step does on disk. It returns false if the user's edits cannot be kept.
func (w *worktree) planDisk(ctx context.Context, s *step, entry *index.Entry, leaving map[string]bool) (bool, error) {
	info, err := w.root.Lstat(filepath.FromSlash(s.path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		switch {
		case s.to.mode == filemode.Empty, entry != nil && entry.SkipWorktree: // a sparse checkout does not get the file
			return true, nil
		case s.mine && !s.replace && s.from.mode != filemode.Empty:
			return false, nil // the user has deleted it
		}
		return true, w.writeNew(ctx, s)
	}
	if err != nil {
		return false, err
	}
	switch {
	case info.IsDir():
		ok, err := w.anyFolder(filepath.FromSlash(s.path), []file{s.from, s.to})
		if err == nil && !ok {
			ok, err = w.emptied(filepath.FromSlash(s.path), leaving)
		}
		if err != nil || !ok || s.to.mode == filemode.Empty {
			return ok, err
		}
		return true, w.writeNew(ctx, s)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(filepath.FromSlash(s.path))
		if err != nil {
			return false, err
		}
		s.before = onDisk{filemode.Symlink, []byte(target)}
		return w.planOver(ctx, s, plumbing.ComputeHash(plumbing.BlobObject, []byte(target)))
	case !info.Mode().IsRegular():
		return false, nil // somebody has put a pipe or a device in its place
	}
	content, err := w.read(filepath.FromSlash(s.path))
	if err != nil {
		return false, err
	}
	s.before = onDisk{filemode.Regular, content}
	if info.Mode()&0o100 != 0 {
		s.before.mode = filemode.Executable
	}
	hash, cleaned, err := w.identify(ctx, s, content)
	if err != nil {
		return false, err
	}
	if ok, err := w.planOver(ctx, s, hash); err != nil || ok {
		return ok, err
	}
	return w.planMerge(ctx, s, content, cleaned)
}

// emptied tells whether the steps remove everything in a folder, so that a file can take its place.
func (w *worktree) emptied(name string, leaving map[string]bool) (bool, error) {
	all := true
	err := fs.WalkDir(w.root.FS(), filepath.ToSlash(name), func(p string, d fs.DirEntry, err error) error {
		all = all && err == nil && (d.IsDir() || leaving[p])
		return err
	})
	return all, err
}

// identify returns the hash by which git knows a file on disk. If one of the commits has exactly these bytes, it is their hash. Otherwise
// it is the hash of the content that git would commit, which identify returns too.
func (w *worktree) identify(ctx context.Context, s *step, content []byte) (plumbing.Hash, []byte, error) {
	hash := plumbing.ComputeHash(plumbing.BlobObject, content)
	if hash == s.from.hash && !w.conv.Filtered(w.conv.Found(s.path)) || hash == s.to.hash {
		return hash, content, nil
	}
	cleaned, err := w.clean(ctx, s.path, content, s.from)
	if err != nil {
		return plumbing.ZeroHash, nil, err
	}
	if hash = plumbing.ComputeHash(plumbing.BlobObject, cleaned); hash == s.from.hash || hash == s.to.hash {
		return hash, cleaned, nil
	}
	if same, err := w.checkedOut(ctx, s.path, content, s.from); err != nil || same {
		return s.from.hash, cleaned, err
	}
	return hash, cleaned, nil
}

// checkedOut tells whether a file is exactly what git writes to disk for f. For some files, git would make another commit from that
// content.
func (w *worktree) checkedOut(ctx context.Context, p string, content []byte, f file) (bool, error) {
	if !f.mode.IsFile() || f.mode == filemode.Symlink {
		return false, nil
	}
	disk, err := w.conv.ToDisk(ctx, p, f.hash)
	return err == nil && bytes.Equal(disk, content), err
}

// planOver plans the step for a file that equals its content in one of the commits, or that may be overwritten. It returns false for other
// files.
func (w *worktree) planOver(ctx context.Context, s *step, hash plumbing.Hash) (bool, error) {
	linked := func(f file) bool { return f.mode == filemode.Symlink }
	isLink := s.before.mode == filemode.Symlink
	switch {
	case s.to.mode != filemode.Empty && hash == s.to.hash && linked(s.to) == isLink && s.to.mode != filemode.Submodule:
		s.stands = hash
		if s.from.hash == s.to.hash && s.from.mode != s.to.mode { // the mode is the change
			return true, w.writeNew(ctx, s)
		}
		return true, nil
	case s.from.mode != filemode.Empty && hash == s.from.hash && linked(s.from) == isLink, s.replace:
		if s.to.mode == filemode.Empty {
			s.remove = true
			return true, nil
		}
		return true, w.writeNew(ctx, s)
	}
	return false, nil
}

// writeNew plans to write the commit's content to disk. A mode that the user has changed stays.
func (w *worktree) writeNew(ctx context.Context, s *step) error {
	s.write, s.mode, s.stands = true, s.to.mode, s.to.hash
	if s.to.mode == filemode.Submodule {
		return nil
	}
	var err error
	if s.to.mode == filemode.Symlink {
		s.content, err = readBlob(w.store, s.to.hash)
		return err
	}
	s.mode = w.keptMode(s)
	if s.mine && s.from.mode == filemode.Empty && w.conv.Found(s.path) == (conversion.Attributes{}) {
		// Write the file as a person would who adds it: core.autocrlf does not change such a file on disk.
		s.content, err = readBlob(w.store, s.to.hash)
		return err
	}
	if s.content, err = w.conv.ToDisk(ctx, s.path, s.to.hash); err != nil {
		return err
	}
	return w.keepLineEnds(ctx, s, s.to.hash)
}

func (w *worktree) keptMode(s *step) filemode.FileMode {
	regular := func(m filemode.FileMode) bool { return m == filemode.Regular || m == filemode.Executable }
	if !w.knowsModes() && regular(s.before.mode) && runtime.GOOS != "windows" {
		return s.before.mode // core.fileMode is false, so the mode on disk has no meaning and stays
	}
	if w.knowsModes() && regular(s.before.mode) && regular(s.from.mode) && s.before.mode != s.from.mode {
		return s.before.mode
	}
	return s.to.mode
}

// planMerge merges the change and the user's edits of a file. It merges the forms that commits have, or, if the file has a filter, the
// forms on disk.
func (w *worktree) planMerge(ctx context.Context, s *step, content, cleaned []byte) (bool, error) {
	if !s.from.mode.IsFile() || !s.to.mode.IsFile() || s.from.mode == filemode.Symlink || s.to.mode == filemode.Symlink {
		return false, nil
	}
	read := func(f file) ([]byte, error) { return readBlob(w.store, f.hash) }
	ours, filtered := cleaned, w.conv.Filtered(w.conv.Found(s.path))
	if filtered {
		read = func(f file) ([]byte, error) { return w.conv.ToDisk(ctx, s.path, f.hash) }
		ours = content
	}
	base, err := read(s.from)
	if err != nil {
		return false, err
	}
	theirs, err := read(s.to)
	if err != nil {
		return false, err
	}
	merged, ok := mergeText(base, ours, theirs)
	if !ok {
		return false, nil
	}
	s.write, s.mode, s.content = true, w.keptMode(s), merged
	if filtered {
		return true, nil
	}
	if s.stands, err = writeBlob(w.store, merged); err != nil {
		return false, err
	}
	if s.content, err = w.conv.ToDisk(ctx, s.path, s.stands); err != nil {
		return false, err
	}
	return true, w.keepLineEnds(ctx, s, s.stands)
}

// mergeText merges two changes of a text. It returns false if they conflict, or if the content is no text.
func mergeText(base, ours, theirs []byte) ([]byte, bool) {
	for _, content := range [][]byte{base, ours, theirs} {
		if bytes.IndexByte(content, 0) >= 0 {
			return nil, false
		}
	}
	return manifest.Merge(base, ours, theirs)
}

// planIndex decides the file's entry in the index. It returns false if the user's staged change cannot be kept.
func (w *worktree) planIndex(s *step, e *index.Entry) (bool, error) {
	set := func(hash plumbing.Hash, mode filemode.FileMode) (bool, error) {
		s.entry, s.set, s.dropEntry = file{mode, hash}, s.to.mode != filemode.Empty, s.to.mode == filemode.Empty
		return true, nil
	}
	missing := e == nil || e.IntentToAdd || e.Hash.IsZero()
	switch {
	case missing && s.to.mode == filemode.Empty:
		return true, nil
	case missing && s.from.mode == filemode.Empty, s.replace:
		return set(s.to.hash, s.to.mode)
	case missing:
		return false, nil // the user has staged its deletion
	case e.Hash == s.to.hash && s.to.mode != filemode.Empty && e.Mode == s.to.mode:
		s.entry = s.to
		return true, nil
	case e.Hash == s.from.hash && e.Mode == s.from.mode:
		return set(s.to.hash, s.to.mode)
	case !s.from.mode.IsFile() || !s.to.mode.IsFile() || !e.Mode.IsFile():
		return false, nil
	case e.Mode == filemode.Symlink || s.from.mode == filemode.Symlink || s.to.mode == filemode.Symlink:
		return false, nil
	}
	mode := s.to.mode
	if e.Mode != s.from.mode {
		mode = e.Mode // the user has staged that
	}
	var texts [3][]byte
	for i, hash := range []plumbing.Hash{s.from.hash, e.Hash, s.to.hash} {
		var err error
		if texts[i], err = readBlob(w.store, hash); err != nil {
			return false, err
		}
	}
	if e.Hash == s.from.hash {
		return set(s.to.hash, mode)
	}
	merged, ok := mergeText(texts[0], texts[1], texts[2])
	if !ok {
		return false, nil
	}
	hash, err := writeBlob(w.store, merged)
	if err != nil {
		return false, err
	}
	return set(hash, mode)
}
