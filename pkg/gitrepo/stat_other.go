//go:build !linux && !darwin

package gitrepo

import (
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// setSystemStat does nothing: git for Windows keeps zeros in these fields.
func setSystemStat(*index.Entry, fs.FileInfo) {}
