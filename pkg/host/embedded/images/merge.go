package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Whiteouts: the names by which a layer removes files of the layers below it.
const (
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// mergeLayer lays the files of the layer in dir over the files in root. It makes hard links, which take no space.
func mergeLayer(ctx context.Context, dir, root string) error {
	target, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := applyWhiteouts(dir, target); err != nil {
		return err
	}
	return walk(dir, func(name string, info fs.DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasPrefix(path.Base(name), whiteoutPrefix) {
			return nil
		}
		resolved, err := realName(target, name)
		if err != nil {
			return err
		}
		return mergeEntry(dir, name, target, resolved, info)
	})
}

// mergeEntry puts the layer's file, folder or link at from to the path name in target. name must not lead over links.
func mergeEntry(dir, from string, target *os.Root, name string, info fs.DirEntry) error {
	old, err := target.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there := err == nil
	switch {
	case info.IsDir():
		if there && old.IsDir() {
			return nil
		}
		// If the layer has a folder where a lower layer has a link to a folder, the link stays. Container engines do the same.
		if resolved, err := target.Stat(name); err == nil && resolved.IsDir() {
			return nil
		}
	case there && old.IsDir():
		if err := target.RemoveAll(name); err != nil {
			return err
		}
	}
	if there && !old.IsDir() {
		if err := target.Remove(name); err != nil {
			return err
		}
	}
	if err := target.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return target.Mkdir(name, 0o755)
	case info.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(filepath.Join(dir, filepath.FromSlash(from)))
		if err != nil {
			return err
		}
		// name may differ from from, because a lower layer may have a link in the path. So compute the target for name.
		return target.Symlink(relativeTarget(name, path.Join("/", path.Dir(from), link)), name)
	}
	// Safe without os.Root: name leads over no link, and only this process writes to the folder, which has no final name yet.
	return os.Link(filepath.Join(dir, filepath.FromSlash(from)), filepath.Join(target.Name(), filepath.FromSlash(name)))
}

// applyWhiteouts removes from target the files that the layer in dir hides. It runs before mergeLayer, because a layer hides files of
// lower layers and none of its own.
func applyWhiteouts(dir string, target *os.Root) error {
	return walk(dir, func(name string, _ fs.DirEntry) error {
		base := path.Base(name)
		if !strings.HasPrefix(base, whiteoutPrefix) {
			return nil
		}
		hidden := strings.TrimPrefix(base, whiteoutPrefix)
		if hidden == "" || hidden == "." || hidden == ".." {
			return fmt.Errorf("entry %q hides no file", name)
		}
		resolved, err := realName(target, path.Join(path.Dir(name), hidden))
		if err != nil {
			return err
		}
		if base == opaqueWhiteout {
			return emptyFolder(target, path.Dir(resolved))
		}
		return target.RemoveAll(resolved)
	})
}

// emptyFolder removes the content of the folder name. A missing folder is no error.
func emptyFolder(target *os.Root, name string) error {
	entries, err := fs.ReadDir(target.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := target.RemoveAll(path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// walk visits all entries below dir, each folder before its content. The names are relative to dir.
func walk(dir string, visit func(name string, info fs.DirEntry) error) error {
	return filepath.WalkDir(dir, func(file string, info fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name), info)
	})
}
