//go:build !linux && !darwin

package gitrepo

import (
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// setSystemStat has nothing to add: git for Windows keeps zeros there.
func setSystemStat(*index.Entry, fs.FileInfo) {}
