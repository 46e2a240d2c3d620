package gitserve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long the refs have to be still: one commit changes several files.
const settleTime = 100 * time.Millisecond

// watchRefs calls changed each time that branches or tags of the repository in dir (its .git) have changed, until ctx ends. It returns why it
// cannot watch, nil at the end of ctx.
func watchRefs(ctx context.Context, dir string, changed func()) (err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	// Folders, not files: git puts new files in the place of the old ones.
	if err := watcher.Add(dir); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	refs := filepath.Join(dir, "refs")
	if err := watchFolders(watcher, refs); err != nil {
		return err
	}
	still := time.NewTimer(0)
	still.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-still.C:
			changed()
		case err := <-watcher.Errors:
			return fmt.Errorf("watch %s: %w", dir, err)
		case event := <-watcher.Events:
			if event.Has(fsnotify.Create) && strings.HasPrefix(event.Name, refs) {
				// A branch feature/x is a file in a folder. What was made there meanwhile counts as well: it comes with the folder.
				if err := watchFolders(watcher, event.Name); err != nil {
					return err
				}
			}
			if isRef(dir, event.Name) {
				still.Reset(settleTime)
			}
		}
	}
}

// isRef tells whether a file that has changed says what the branches and tags are.
func isRef(dir, name string) bool {
	switch {
	case strings.HasSuffix(name, ".lock"): // git's own, until it has its name
		return false
	case filepath.Dir(name) == dir:
		return slices.Contains([]string{"HEAD", "packed-refs"}, filepath.Base(name))
	default:
		return true
	}
}

// watchFolders adds root, where it is a folder, and those in it. What is gone again is no error.
func watchFolders(watcher *fsnotify.Watcher, root string) error {
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		}
		if err := watcher.Add(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", root, err)
	}
	return nil
}
