// Package privatefile writes what a host keeps for itself: keys, records, references.
package privatefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the file at path as a whole, or makes it, readable by its owner only. A reader sees the old content or the new
// one. The folder must exist.
func Write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
