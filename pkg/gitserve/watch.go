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

	"github.com/fleetctl/fleetctl/pkg/within"
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
	dirs, err := refDirs(dir)
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	if err := watchDirs(watcher, dirs); err != nil {
		return err
	}
	return follow(ctx, watcher, dirs, changed)
}

// refDirs are the folders with the repository's HEAD, packed-refs and refs. In a linked working tree, dir has only the HEAD. The branches
// and tags are in the folder that the file commondir names; all working trees share this folder (see git's gitrepository-layout).
func refDirs(dir string) ([]string, error) {
	content, err := within.Named(filepath.Join(dir, "commondir"), maxPointer)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{dir}, nil
	}
	if err != nil {
		return nil, err
	}
	common := strings.TrimSpace(string(content))
	if !filepath.IsAbs(common) {
		common = filepath.Join(dir, common)
	}
	return []string{dir, filepath.Clean(common)}, nil
}

// watchDirs watches dirs and the folders of their refs.
func watchDirs(watcher *fsnotify.Watcher, dirs []string) error {
	for _, dir := range dirs {
		// Watch folders, not files: git replaces a file by another one of the same name.
		if err := watcher.Add(dir); err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
		if err := watchFolders(watcher, filepath.Join(dir, "refs")); err != nil {
			return err
		}
	}
	return nil
}

// follow calls changed after each change that watcher reports, until ctx ends.
func follow(ctx context.Context, watcher *fsnotify.Watcher, dirs []string, changed func()) error {
	still := time.NewTimer(0)
	still.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-still.C:
			changed()
		case err := <-watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch %s: %w", dirs[0], err)
			}
			// The system has dropped events, among them perhaps new folders and changes of refs.
			if err := watchDirs(watcher, dirs); err != nil {
				return err
			}
			still.Reset(settleTime)
		case event := <-watcher.Events:
			if event.Has(fsnotify.Create) && !slices.Contains(dirs, filepath.Dir(event.Name)) {
				// A branch feature/x is a file in a new folder feature.
				if err := watchFolders(watcher, event.Name); err != nil {
					return err
				}
			}
			if isRef(dirs, event.Name) {
				still.Reset(settleTime)
			}
		}
	}
}

// isRef tells whether the file name holds branches or tags. dirs are the watched folders besides those of refs.
func isRef(dirs []string, name string) bool {
	switch {
	case strings.HasSuffix(name, ".lock"): // git writes this file and then renames it
		return false
	case slices.Contains(dirs, filepath.Dir(name)):
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
