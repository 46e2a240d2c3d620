//go:build unix

package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe would wait for a writer that never comes.
func TestPipeInPlaceOfBlob(t *testing.T) {
	dir := newBundle(t)
	file := filepath.Join(dir, blobPath(descriptorsOf(t, dir)["layer"].Digest))
	must(t, os.Remove(file))
	must(t, syscall.Mkfifo(file, 0o600))
	var corrupt *CorruptError
	if _, err := Open(t.Context(), dir); !errors.As(err, &corrupt) {
		t.Errorf("error %v", err)
	}
}
