//go:build unix

package state

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkOwner returns an error if another user may have written the record of a management cluster, or may read its private files. A record
// names a kubeconfig, and a kubeconfig can run commands. checkOwner looks at the cluster's folder, the folders up to the state folder, and
// the record, if they exist.
func (c Cluster) checkOwner() error {
	clusters := filepath.Dir(c.Dir)
	// Other users may write to these folders, for example on the volume of a pod. Their files then belong to them.
	if err := belongs(os.Stat, anyMode, stateFolder, filepath.Dir(clusters), clusters); err != nil {
		return err
	}
	// A link in the place of a folder or record counts with the owner of the link, wherever it leads.
	return belongs(os.Lstat, atomicfile.Shared, stateFolder, c.Dir, c.Path(recordFile))
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
	return cmp.Or(belongs(os.Stat, anyMode, stateFolder, s.Dir), belongs(os.Lstat, anyMode, stateFolder, below...))
}

// CheckOwner returns an error if a private file of the state folder, such as a file with age keys, or its folder may belong to another
// user.
func CheckOwner(file string) error {
	return belongs(os.Lstat, atomicfile.Shared, stateFolder, filepath.Dir(file), file)
}

// CheckCache returns an error if another user may have written what is in the cache folder, or in one of the folders that fleetctl keeps
// there. What is cached counts as what was fetched, checked or rendered: a forged entry would be applied.
func CheckCache(dir string) error {
	names := []string{dir}
	for _, name := range cacheFolders() {
		names = append(names, filepath.Join(dir, name))
	}
	// Every user may write to the volume of a pod. What others put there is theirs, and so is refused.
	if err := belongs(os.Stat, anyMode, cacheFolder, dir); err != nil {
		return err
	}
	// A link in the place of the cache folder is the user's choice; below, it counts with the owner of the link, and of what it leads to.
	below := names[1:]
	return cmp.Or(belongs(os.Lstat, atomicfile.Shared, cacheFolder, below...), belongs(os.Stat, atomicfile.Shared, cacheFolder, below...))
}

// cacheFolders are the folders of the cache in which several runs, or versions, of fleetctl keep something.
func cacheFolders() []string {
	return []string{"render", "images", "bundles", "crds", "programs", "providers"}
}

// setting names the flag and the variable of a folder.
type setting string

const (
	stateFolder setting = "--state-dir or FLEETCTL_STATE_DIR"
	cacheFolder setting = "--cache-dir or FLEETCTL_CACHE_DIR"
)

// belongs checks the owners of files and folders, if they exist. It trusts the user's own files and root's; for root, also the files of the
// user who called sudo. A file for which open is true is open to all users, so it is not trusted.
func belongs(stat func(string) (fs.FileInfo, error), open func(fs.FileInfo) bool, kind setting, names ...string) error {
	for _, name := range names {
		info, err := stat(name)
		if err != nil {
			continue // who reads it says why
		}
		uid, known := atomicfile.OwnerOf(info)
		if !known || atomicfile.Trusted(uid) && !open(info) {
			continue
		}
		made, ok := ownIn(name, info)
		switch {
		case !atomicfile.Trusted(uid) && ok && made.owner == uid: // as root's are on a share that takes root for nobody
		case !atomicfile.Trusted(uid):
			return diag.Errorf("run it as that user, or point "+string(kind)+" at a folder of your own",
				"%s belongs to %s, and not to you: nothing in it is trusted", name, atomicfile.UserName(uid))
		case ok && made.shared: // as on a file system that keeps no modes
		default:
			return diag.Errorf("`chmod go-rwx` it, if you know who has written its content; or point "+string(kind)+" at another folder",
				"every user of this machine may write to %s: nothing in it is trusted", name)
		}
	}
	return nil
}

func anyMode(fs.FileInfo) bool { return false }

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
	uid, known := atomicfile.OwnerOf(look)
	return made{uid, atomicfile.Shared(look)}, known
}
