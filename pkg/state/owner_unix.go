//go:build unix

package state

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkOwner is an error where another user may have written what is known of a management cluster, or will read what is kept: a record
// names a kubeconfig, and a kubeconfig has commands run. It looks at the folder of the cluster, the folders up to the state folder, and the
// record, as far as they are there.
func (c Cluster) checkOwner() error {
	clusters := filepath.Dir(c.Dir)
	// Others may write to these, as to the volume of a pod: what they put there is theirs.
	if err := belongs(os.Stat, anyMode, filepath.Dir(clusters), clusters); err != nil {
		return err
	}
	// A link in the place of a folder or a record is whose it is, wherever it leads.
	return belongs(os.Lstat, shared, c.Dir, c.Path(recordFile))
}

// CheckOwner is an error where a private file of the state folder, such as one with age keys, or the folder that it is in, may be another
// user's.
func CheckOwner(file string) error { return belongs(os.Lstat, shared, filepath.Dir(file), file) }

// belongs looks whose files and folders are, as far as they are there. The user's own and root's are trusted; for root, so are those of the
// user who called sudo. What open says of is open to all users, and so nobody's.
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
			return diag.Errorf("`chmod go-rwx` it, if you know who has written what is there; or point --state-dir or FLEETCTL_STATE_DIR at "+
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

// ownIn makes a private file where name is, and tells how it looks there: some file systems keep no owners, or no modes.
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
