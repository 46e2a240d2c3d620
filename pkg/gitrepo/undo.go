package gitrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// undoName is the journal in .git of the files that a command is about to write. If the next command finds the journal, the earlier command
// was killed. It then first restores the files that the killed command wrote, so that they are never mistaken for a person's edits.
const undoName = "fleetctl.undo"

// undoLog is the content of the journal.
type undoLog struct {
	// If Branch is at Commit, the command had done everything. Both are empty if all changes were temporary.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	Files  []undo `json:"files"`
}

// undo is one file: its new and its earlier content on disk and in the index. The hashes are those of the exact bytes, which the object
// store keeps.
type undo struct {
	Path                    string `json:"path"`
	Written                 string `json:"written,omitempty"` // "" if the command would remove the file
	Disk                    bool   `json:"disk"`              // the command would change the file on disk
	Before, Staged, WasThen fileID
}

// fileID identifies the content and the mode of a file. The mode is 0 if there is no file.
type fileID struct {
	Mode uint32 `json:"mode"`
	Hash string `json:"hash"`
}

func (f fileID) file() file { return file{filemode.FileMode(f.Mode), plumbing.NewHash(f.Hash)} }

func idOf(f file) fileID { return fileID{uint32(f.mode), f.hash.String()} }

func entryID(e *index.Entry) fileID {
	if e == nil {
		return idOf(file{})
	}
	return idOf(file{e.Mode, e.Hash})
}

// announce records the changes that the steps are about to make, and keeps the content that they replace.
func (r *Repo) announce(l *lock, steps []*step, branch plumbing.ReferenceName, commit plumbing.Hash) error {
	log := undoLog{Files: []undo{}}
	if branch != "" {
		log.Branch, log.Commit = branch.String(), commit.String()
	}
	for _, s := range steps {
		u := undo{Path: s.path, Disk: s.write || s.remove, WasThen: entryID(l.entries[s.path]), Before: idOf(file{})}
		if s.mode == filemode.Submodule {
			continue
		}
		if s.write {
			u.Written = plumbing.ComputeHash(plumbing.BlobObject, s.content).String()
		}
		if s.before.mode != filemode.Empty {
			hash, err := writeBlob(r.git.Storer, s.before.content)
			if err != nil {
				return err
			}
			u.Before = idOf(file{s.before.mode, hash})
		}
		u.Staged = u.WasThen
		switch {
		case s.dropEntry:
			u.Staged = idOf(file{})
		case s.set:
			u.Staged = idOf(s.entry)
		}
		log.Files = append(log.Files, u)
	}
	content, err := json.Marshal(log)
	if err != nil {
		return err
	}
	return l.replace(undoName, content)
}

// finish removes the journal, because the steps are done.
func (l *lock) finish() error { return ignoreMissing(os.Remove(l.path(undoName))) }

// Recover undoes the incomplete changes of a killed command in the working tree and in the index. Later edits of a person stay.
func (r *Repo) Recover(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Join(r.gitDir, undoName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l, err := r.acquire(ctx) // acquire recovers
	if err != nil {
		return err
	}
	return l.release()
}

// recover is Recover for a caller that holds the lock.
func (r *Repo) recover(ctx context.Context, l *lock) error {
	content, err := within.Named(l.path(undoName), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var log undoLog
	if err := json.Unmarshal(content, &log); err != nil {
		return fmt.Errorf("read %s: %w", l.path(undoName), err)
	}
	if log.Branch != "" {
		at, err := r.reference(plumbing.ReferenceName(log.Branch))
		if err != nil {
			return err
		}
		if at.String() == log.Commit {
			return l.finish()
		}
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	for _, u := range log.Files {
		if err := w.takeBack(ctx, l, u); err != nil {
			return fmt.Errorf("undo the change of a killed command in %s: %w", u.Path, err)
		}
	}
	if l.changed {
		if err := l.writeIndex(); err != nil {
			return err
		}
	}
	return l.finish()
}

func (w *worktree) takeBack(ctx context.Context, l *lock, u undo) error {
	if err := checkPath(u.Path); err != nil {
		return err
	}
	if was := u.WasThen.file(); u.Staged != u.WasThen && entryID(l.entries[u.Path]) == u.Staged {
		if delete(l.entries, u.Path); was.mode != filemode.Empty {
			l.entries[u.Path] = &index.Entry{Name: u.Path, Hash: was.hash, Mode: was.mode}
		}
		l.changed = true
	}
	if !u.Disk {
		return nil
	}
	stands, err := w.bytesHash(u.Path)
	if err != nil || stands != u.Written {
		return err
	}
	before := u.Before.file()
	if before.mode == filemode.Empty {
		return w.remove(u.Path)
	}
	content, err := readBlob(w.store, before.hash)
	if err != nil {
		return err
	}
	return w.put(ctx, diskFile{u.Path, content, before.mode})
}

// bytesHash returns the hash of the file on disk; "" if there is none.
func (w *worktree) bytesHash(p string) (string, error) {
	name := filepath.FromSlash(p)
	info, err := w.root.Lstat(name)
	if err != nil || info.IsDir() {
		return "", nil //nolint:nilerr // no file that a command could have written
	}
	var content []byte
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := w.root.Readlink(name)
		if err != nil {
			return "", err
		}
		content = []byte(target)
	} else if !info.Mode().IsRegular() {
		return "", nil // a command writes no pipe
	} else if content, err = w.read(name); err != nil {
		return "", err
	}
	return plumbing.ComputeHash(plumbing.BlobObject, content).String(), nil
}
