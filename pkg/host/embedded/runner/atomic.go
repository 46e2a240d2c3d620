package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dataLink is a link to the folder with a volume's present content. The kubelet's volumes have the same form, and programs that watch their
// certificates rely on it.
const dataLink = "..data"

// writeAtomically makes files the whole content of the volume in dir. A reader sees all old files or all new files. If the volume already
// has this content, it changes nothing.
func writeAtomically(dir string, files map[string][]byte) error {
	for name := range files {
		if !filepath.IsLocal(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("path %q leads out of the volume", name)
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != "" && same(filepath.Join(dir, old), files) {
		return nil
	}
	next, err := os.MkdirTemp(dir, "..version-")
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(next, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); err != nil {
			return errors.Join(err, os.RemoveAll(next))
		}
	}
	temporary := filepath.Join(dir, "..data-next")
	_ = os.Remove(temporary)
	if err := os.Symlink(filepath.Base(next), temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	return tidy(dir, filepath.Base(next), files)
}

// same tells whether folder holds exactly these files.
func same(folder string, files map[string][]byte) bool {
	found := 0
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file) //nolint:gosec // a folder that the runner made
		if want, ok := files[filepath.ToSlash(name)]; err != nil || !ok || !bytes.Equal(want, content) {
			return errDiffers
		}
		found++
		return nil
	})
	return err == nil && found == len(files)
}

var errDiffers = errors.New("differs")

// tidy makes the links under the files' names. It removes links to files that the volume no longer has, and folders with older content.
func tidy(dir, current string, files map[string][]byte) error {
	wanted := map[string]bool{}
	for name := range files {
		first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		wanted[first] = true
		err := os.Symlink(filepath.Join(dataLink, first), filepath.Join(dir, first))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !wanted[name] && name != dataLink && name != current {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
