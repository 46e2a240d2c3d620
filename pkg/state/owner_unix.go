//go:build unix

package state

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkOwner is an error where another user may have written what is known of a management cluster, or will read what is kept: a record names a kubeconfig,
// and a kubeconfig has commands run. It looks at the folder of the cluster, the folders up to the state folder, and the record, as far as they are there.
// The user's own and root's are trusted; for root, so are those of the user who called sudo.
func (c Cluster) checkOwner() error {
	clusters := filepath.Dir(c.Dir)
	for i, name := range []string{filepath.Dir(clusters), clusters, c.Dir, c.Path(recordFile)} {
		inside := i >= 2
		info, err := os.Stat(name)
		if err != nil {
			continue // who reads it says why
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		if !trusted(stat.Uid) {
			return diag.Errorf("point --state-dir or FLEETCTL_STATE_DIR at a folder of your own, or take it over: `chown -R`",
				"%s belongs to %s, and not to you: nothing in it is trusted", name, userName(stat.Uid))
		}
		// Above the cluster's folder it is enough whose it is: what others put into the place of it is theirs.
		if inside && info.Mode().Perm()&0o002 != 0 {
			return diag.Errorf("`chmod -R go-rwx` it, if you know who has written what is there; or point --state-dir or FLEETCTL_STATE_DIR at another folder",
				"every user of this machine may write to %s: nothing in it is trusted", name)
		}
	}
	return nil
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
