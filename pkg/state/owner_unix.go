//go:build unix

package state

import (
	"cmp"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkOwner returns an error if another user may have written the record of a management cluster, or may read its private files. A record
// names a kubeconfig, and a kubeconfig can run commands. checkOwner looks at the cluster's folder, the folders up to the state folder, and
// the record, if they exist.
func (c Cluster) checkOwner() error {
	clusters := filepath.Dir(c.Dir)
	// Other users may write to these folders, for example on the volume of a pod. Their files then belong to them.
	if err := belongs(os.Stat, anyMode, filepath.Dir(clusters), clusters); err != nil {
		return err
	}
	// A link in the place of a folder or record counts with the owner of the link, wherever it leads.
	return belongs(os.Lstat, shared, c.Dir, c.Path(recordFile))
}

// checkFolders returns an error if the state folder belongs to another user, or a folder on the way from there to dir, which is below the
// state folder: the owner of such a folder chooses where its content goes. Folders that do not exist are nobody's. The mode of a folder of
// this user may be mended.
func (s Store) checkFolders(dir string) error {
	top := filepath.Clean(s.Dir)
	var below []string
	for ; len(dir) > len(top) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		below = append(below, dir)
	}
	slices.Reverse(below)
	// A link in the place of the state folder is the user's choice; below, it counts with the owner of the link.
	return cmp.Or(belongs(os.Stat, anyMode, s.Dir), belongs(os.Lstat, anyMode, below...))
}

// CheckOwner returns an error if a private file of the state folder, such as a file with age keys, or its folder may belong to another
// user.
func CheckOwner(file string) error { return belongs(os.Lstat, shared, filepath.Dir(file), file) }

// belongs checks the owners of files and folders, if they exist. It trusts the user's own files and root's; for root, also the files of the
// user who called sudo. A file for which open is true is open to all users, so it is not trusted.
func belongs(stat func(string) (fs.FileInfo, error), open func(fs.FileInfo) bool, names ...string) error {
	for _, name := range names {
		info, err := stat(name)
		if err != nil {
			continue // who reads it says why
		}
		uid, known := owner(info)
		if !known || trusted(uid) && !open(info) {
			continue
		}
		made, ok := ownIn(name, info)
		switch {
		case !trusted(uid) && ok && made.owner == uid: // as root's are on a share that takes root for nobody
		case !trusted(uid):
			return diag.Errorf("run it as that user, or point --state-dir or FLEETCTL_STATE_DIR at a folder of your own",
				"%s belongs to %s, and not to you: nothing in it is trusted", name, userName(uid))
		case ok && made.shared: // as on a file system that keeps no modes
		default:
			return diag.Errorf("`chmod go-rwx` it, if you know who has written its content; or point --state-dir or FLEETCTL_STATE_DIR at "+
				"another folder",
				"every user of this machine may write to %s: nothing in it is trusted", name)
		}
	}
	return nil
}

func anyMode(fs.FileInfo) bool { return false }

// shared tells whether every user may write to a file or a folder, and take away what others have put there. Links have no mode.
func shared(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSymlink == 0 && info.Mode()&fs.ModeSticky == 0 && info.Mode().Perm()&0o002 != 0
}

// made is what a private file of this user looks like somewhere.
type made struct {
	owner  uint32
	shared bool
}

// ownIn makes a private file next to name, and returns the owner and mode that the file gets there: some file systems store no owners, or
// no modes.
func ownIn(name string, info fs.FileInfo) (made, bool) {
	dir := name
	if !info.IsDir() {
		dir = filepath.Dir(name)
	}
	f, err := os.CreateTemp(dir, ".owner-*")
	if err != nil {
		return made{}, false
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	look, err := f.Stat()
	if err != nil {
		return made{}, false
	}
	uid, known := owner(look)
	return made{uid, shared(look)}, known
}

func owner(info fs.FileInfo) (uid uint32, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}

func trusted(uid uint32) bool {
	me := os.Geteuid()
	if uid == 0 || int(uid) == me {
		return true
	}
	return me == 0 && os.Getenv("SUDO_UID") == strconv.FormatUint(uint64(uid), 10)
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user with the id " + id
}
