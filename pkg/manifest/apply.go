package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Apply makes the folder root as the set declares it, makes root if it is missing, and returns the changes, sorted by path. It does not
// touch files that already have the wanted content. All new content is on the disk before Apply replaces the first file. Each file is
// replaced in one step. If a file cannot be replaced, Apply restores the files before it: after an error nothing has changed, unless the
// error says otherwise. Apply removes folders that become empty. Errors: those of Plan, and of writing.
func (cs *ChangeSet) Apply(root string) ([]Change, error) {
	if cs.Empty() {
		return []Change{}, nil
	}
	r, err := cs.open(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	changes, err := cs.plan(r)
	if err != nil {
		return nil, err
	}
	return apply(r, changes)
}

// ErrChanged is the error of ApplyPlanned if a file is no longer as it was.
var ErrChanged = errors.New("a file has changed in the meantime")

// ApplyPlanned is Apply for changes that Plan returned. It changes nothing if one of the files is no longer as it was then, so that nothing
// is lost that others have written since. Then the error matches ErrChanged. It keeps other processes that call it out of root until it is
// done, and waits for them until ctx ends.
func (cs *ChangeSet) ApplyPlanned(ctx context.Context, root string, planned []Change) (_ []Change, err error) {
	if cs.Empty() {
		return []Change{}, nil
	}
	r, err := cs.open(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	release, err := atomicfile.Alone(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	changes, err := cs.plan(r)
	if err != nil {
		return nil, err
	}
	if name := firstDifference(planned, changes); name != "" {
		return nil, diag.Errorf("run the command again", "%w: %s", ErrChanged, name)
	}
	return apply(r, changes)
}

// firstDifference returns the first path at which a file was not the same for one plan of a set as for another one.
func firstDifference(before, now []Change) string {
	for i := range max(len(before), len(now)) {
		switch {
		case i >= len(before) || i < len(now) && now[i].Path < before[i].Path:
			return now[i].Path
		case i >= len(now) || before[i].Path < now[i].Path:
			return before[i].Path
		case before[i].Action != now[i].Action || before[i].oldMode != now[i].oldMode || !bytes.Equal(before[i].old, now[i].old):
			return now[i].Path
		}
	}
	return ""
}

// open opens the folder root, which it makes if it is missing, once the set is known to have no faults of its own.
func (cs *ChangeSet) open(root string) (*os.Root, error) {
	if _, err := cs.wanted(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	return r, nil
}

// apply carries out changes that were just planned for the folder r.
func apply(r *os.Root, changes []Change) ([]Change, error) {
	if err := sweep(r); err != nil {
		return nil, fmt.Errorf("remove what a command that was killed has left: %w", err)
	}
	tx := &transaction{root: r, staged: map[string]*atomicfile.Staged{}}
	if err := tx.run(changes); err != nil {
		return nil, err
	}
	return changes, tx.settle(changes)
}

// sweep removes the temporary files that killed runs have left in a folder and below it, but not in repositories inside the folder.
func sweep(root *os.Root) error {
	return atomicfile.SweepTree(root, false, func(name string, isDir bool) bool {
		if !isDir || name == "." {
			return false
		}
		if path.Base(name) == ".git" {
			return true
		}
		_, err := root.Lstat(filepath.FromSlash(name + "/.git"))
		return err == nil
	})
}

// transaction carries a set of changes out, and back if one of them fails.
type transaction struct {
	root    *os.Root
	folders []string                      // made by us, outermost first
	staged  map[string]*atomicfile.Staged // the file of each path that is not yet in its place
	done    []Change
}

func (tx *transaction) run(changes []Change) error {
	for _, c := range changes {
		if err := tx.stage(c); err != nil {
			return errors.Join(fmt.Errorf("write %s: %w", c.Path, err), tx.undo())
		}
	}
	if err := atomicfile.Flush(slices.Collect(maps.Values(tx.staged))...); err != nil {
		return errors.Join(fmt.Errorf("flush what is written: %w", err), tx.undo())
	}
	for _, c := range changes {
		if err := tx.commit(c); err != nil {
			return errors.Join(fmt.Errorf("%s %s: %w", c.Action, c.Path, err), tx.undo())
		}
	}
	return nil
}

func (tx *transaction) stage(c Change) error {
	if c.Action == ActionDelete {
		return nil
	}
	if err := tx.makeFolder(filepath.Dir(c.local)); err != nil {
		return err
	}
	mode, exact := c.newMode, c.newMode != 0
	if !exact {
		mode = defaultMode
	}
	staged, err := atomicfile.Stage(tx.root, c.local, c.new, mode, exact)
	if err == nil {
		tx.staged[c.local] = staged
	}
	return err
}

// makeFolder is MkdirAll, and remembers the folders that it made.
func (tx *transaction) makeFolder(dir string) error {
	if dir == "." {
		return nil
	}
	if err := tx.makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	err := tx.root.Mkdir(dir, 0o755)
	if err == nil {
		tx.folders = append(tx.folders, dir)
		return nil
	}
	if info, statErr := tx.root.Stat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

func (tx *transaction) commit(c Change) error {
	if c.Action == ActionDelete {
		if err := tx.root.Remove(c.local); err != nil {
			return err
		}
	} else {
		staged := tx.staged[c.local]
		delete(tx.staged, c.local)
		if err := staged.Place(); err != nil {
			return err
		}
	}
	tx.done = append(tx.done, c)
	return nil
}

// settle removes the folders that deletions left empty and flushes the entries of all folders that changed. Nothing is undone
// from here on: every file is as wanted.
func (tx *transaction) settle(changes []Change) error {
	var dirs []string
	for _, c := range changes {
		dir := filepath.Dir(c.local)
		for c.Action == ActionDelete && dir != "." && tx.root.Remove(dir) == nil { // fails on a folder that is not empty
			dir = filepath.Dir(dir)
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range tx.folders {
		dirs = append(dirs, filepath.Dir(dir))
	}
	slices.Sort(dirs)
	return atomicfile.SyncFolders(tx.root, slices.Compact(dirs)...)
}

// undo puts back what was there before, newest change first.
func (tx *transaction) undo() error {
	var errs []error
	for _, c := range slices.Backward(tx.done) {
		var err error
		if c.Action == ActionCreate {
			err = tx.root.Remove(c.local)
		} else {
			err = atomicfile.Replace(tx.root, c.local, c.old, c.oldMode, true)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("put %s back: %w", c.Path, err))
		}
	}
	for _, staged := range tx.staged {
		errs = append(errs, staged.Discard())
	}
	for _, dir := range slices.Backward(tx.folders) {
		errs = append(errs, tx.root.Remove(dir))
	}
	return errors.Join(errs...)
}
