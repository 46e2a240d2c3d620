//go:build linux || darwin

package gitrepo

import (
	"io/fs"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// setSystemStat sets the fields of an index entry besides the modification time and the size. Without them, git would read the file again,
// and git commands that do not read files would report it as changed.
func setSystemStat(e *index.Entry, info fs.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	e.CreatedAt = time.Unix(changeTime(s))
	e.Dev, e.Inode, e.UID, e.GID = uint32(s.Dev), uint32(s.Ino), s.Uid, s.Gid //nolint:gosec // git keeps the lower 32 bits too
}
