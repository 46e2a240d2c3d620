package gitrepo

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// errLies is in the error of an object that is longer than it says. go-git would read all of it into memory.
var errLies = errors.New("it is longer than it says")

// sized is a file that tells its size, so that go-git holds the index of a pack against it before it makes room for what the index says.
type sized struct {
	billy.File
	of   billy.Filesystem
	name string
}

// Stat returns what the folder says of the file.
func (s sized) Stat() (fs.FileInfo, error) { return s.of.Stat(s.name) }

// checkLoose returns an error for a file of an object that says less than it has: its head has no end, or its content is longer than the
// head says. The file is at its beginning afterwards. A file that is small even if it is unpacked is not looked at.
func checkLoose(f billy.File, path string, size int64) error {
	const (
		smallest = 4 << 10 // more than a thousand times this is no harm
		ratio    = 1032    // zlib makes nothing smaller than by this: https://zlib.net/zlib_tech.html
	)
	if size <= smallest {
		return nil
	}
	err := holds(f, size > objectLimit()/ratio)
	if err != nil {
		hash := filepath.Base(filepath.Dir(path)) + filepath.Base(path)
		return diag.Errorf("`git fsck` names all damaged objects; clone the repository anew", "read the object %s, %s: %w", hash, path, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// holds reads the head of an object, and if whole its content.
func holds(f io.Reader, whole bool) error {
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil //nolint:nilerr // go-git reports what is no object
	}
	head := make([]byte, 32) // "commit 9223372036854775807\0" fits
	n, _ := io.ReadFull(z, head)
	head, content, found := bytes.Cut(head[:n], []byte{0})
	if !found {
		return errLies
	}
	_, text, _ := bytes.Cut(head, []byte(" "))
	says, err := strconv.ParseInt(string(text), 10, 64)
	if !whole || err != nil || says > objectLimit() { // a store refuses what says that it is too large
		return nil //nolint:nilerr // go-git reports what is no object
	}
	has, _ := io.Copy(io.Discard, io.LimitReader(z, says+1))
	if has+int64(len(content)) > says {
		return errLies
	}
	return nil
}

// isLoose tells whether a file has an object: objects/cd/e61612….
func isLoose(name string) bool {
	dir, base := filepath.Split(name)
	dir = filepath.Base(dir)
	return len(dir) == 2 && plumbing.IsHash(dir+base)
}
