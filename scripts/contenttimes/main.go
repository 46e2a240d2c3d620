//go:build unix

// Command contenttimes gives each file and folder below a folder a time of modification that follows from its content alone. Go's test
// cache knows a file that a test opened by its size and this time, so in a fresh clone it takes each such file for changed. With these
// times, it runs a test again only if the test's program, or what the test opened, is another.
//
//	go run ./scripts/contenttimes FOLDER
//
// A folder's time follows from the names and times of what is in it. The content of a folder named .git is left alone; the folder itself
// gets a time that is always the same.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: contenttimes FOLDER")
		os.Exit(2)
	}
	if _, err := set(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "contenttimes:", err)
		os.Exit(1)
	}
}

// sum is the SHA-256 of a file's content or of a folder's list.
type sum = [sha256.Size]byte

// set sets the times of path and of all below it, and returns the sum of its content.
func set(path string) (sum, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return sum{}, err
	}
	content, err := sumOf(path, info)
	if err != nil {
		return sum{}, err
	}
	return content, unix.UtimesNanoAt(unix.AT_FDCWD, path, times(content), unix.AT_SYMLINK_NOFOLLOW)
}

func sumOf(path string, info fs.FileInfo) (sum, error) {
	switch {
	case info.IsDir() && info.Name() == ".git":
		return sum{}, nil
	case info.IsDir():
		return sumOfFolder(path)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return sha256.Sum256([]byte(target)), err
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		return sha256.Sum256(data), err
	default:
		return sum{}, fmt.Errorf("%s is no file, folder or symbolic link", path)
	}
}

func sumOfFolder(path string) (sum, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return sum{}, err
	}
	list := sha256.New()
	for _, entry := range entries {
		content, err := set(filepath.Join(path, entry.Name()))
		if err != nil {
			return sum{}, err
		}
		fmt.Fprintf(list, "%q %x\n", entry.Name(), content)
	}
	return sum(list.Sum(nil)), nil
}

// times are an access and a modification between 2001 and 2018: 29 bits of seconds and some 30 of nanoseconds.
func times(content sum) []unix.Timespec {
	seconds := 1_000_000_000 + int64(binary.BigEndian.Uint64(content[:8])%(1<<29))
	nanoseconds := int64(binary.BigEndian.Uint64(content[8:16]) % 1_000_000_000)
	t := unix.NsecToTimespec(seconds*1_000_000_000 + nanoseconds)
	return []unix.Timespec{t, t}
}
