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

// settleTime is how long refs must not change before changed is called. One commit changes several files.
const settleTime = 100 * time.Millisecond

// watchRefs calls changed after each change of a branch or tag, until ctx ends. dir is the repository's .git, or a bare repository. It
// returns nil when ctx ends, and an error when it cannot watch.
func watchRefs(ctx context.Context, dir string, changed func()) (err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	// Watch folders, not files: git replaces a file by another one of the same name.
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
				// A branch feature/x is a file in a new folder feature.
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

// isRef tells whether the file name holds branches or tags, of the repository in dir.
func isRef(dir, name string) bool {
	switch {
	case strings.HasSuffix(name, ".lock"): // git writes this file and then renames it
		return false
	case filepath.Dir(name) == dir:
		return slices.Contains([]string{"HEAD", "packed-refs"}, filepath.Base(name))
	default:
		return true
	}
}

// watchFolders watches root and all folders below it. A root that is a file or does not exist is no error.
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
