package within

import (
	"os"
	"path/filepath"
	"runtime"
)

// Exposed tells whether every user of this machine can read a file: others may read the file, and go through each folder on the way to it.
// file is its absolute path without links. A file that is not there, or that cannot be looked at, is not exposed. On Windows no file is,
// because a mode does not say there who may read.
func Exposed(name string) (file string, exposed bool) {
	const reads, enters = 0o004, 0o001 // for users who are neither the owner nor in the group
	if runtime.GOOS == "windows" {
		return "", false
	}
	file, err := filepath.Abs(name)
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	if err != nil {
		return "", false
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&reads == 0 {
		return "", false
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&enters == 0 {
			return "", false
		}
		if dir == filepath.Dir(dir) {
			return file, true
		}
	}
}
