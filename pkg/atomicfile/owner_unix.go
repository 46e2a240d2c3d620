//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// OwnerOf is the user whom a file or folder belongs to, if the file system tells.
func OwnerOf(info fs.FileInfo) (uid uint32, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}

// Trusted tells whether files of a user count as the own ones: those of this user and of root; for root, also those of the user who called
// sudo.
func Trusted(uid uint32) bool {
	me := os.Geteuid()
	if uid == 0 || int(uid) == me {
		return true
	}
	return me == 0 && os.Getenv("SUDO_UID") == strconv.FormatUint(uint64(uid), 10)
}

// UserName names a user for people.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user with the id " + id
}

// Shared tells whether every user may write to a file or a folder, and take away what others have put there. Links have no mode.
func Shared(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSymlink == 0 && info.Mode()&fs.ModeSticky == 0 && info.Mode().Perm()&0o002 != 0
}

// checkTemp refuses a folder for temporary files in which another user may put a folder of theirs in the place of ours: what is read there,
// such as the copy of a repository, would be theirs. A folder with the sticky bit keeps others from that.
func checkTemp(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSticky != 0 {
		return nil //nolint:nilerr // who makes a folder there says why it cannot be
	}
	if uid, known := OwnerOf(info); known && !Trusted(uid) {
		return diag.Errorf("set TMPDIR to a folder of your own",
			"the folder for temporary files, %s, belongs to %s, who could change what is put there", dir, UserName(uid))
	}
	return nil // a folder of root's that all may write to is the volume of a pod
}
