package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ChangeSet is a set of files to write and to delete below one root. The zero value changes nothing.
type ChangeSet struct {
	files   []File
	deletes []string
}

// Action is what a Change does to its file.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
)

// Change is a file that differs from its content in a ChangeSet.
type Change struct {
	// Path is relative to the root, with forward slashes.
	Path string `json:"path"`
	// Action says whether the file is new, changes or goes.
	Action Action `json:"action"`

	local    string
	old, new []byte
	oldMode  fs.FileMode
	newMode  fs.FileMode
	modes    string // lines about modes in Git, as git diff writes them
}

// Compare is the change of a file from one content to another; nil stands for no file.
func Compare(path string, before, after []byte) Change {
	c := Change{Path: path, Action: ActionUpdate, old: before, new: after}
	switch {
	case before == nil:
		c.Action = ActionCreate
	case after == nil:
		c.Action = ActionDelete
	}
	return c
}

// InGit is the change of a file that has these modes in Git, such as 100644 and 120000; "" stands for no file. Its difference shows the
// modes if they are unusual, as git diff does.
func (c Change) InGit(before, after string) Change {
	const usual = "100644"
	switch {
	case before == "":
		c.Action = ActionCreate
		if after != usual || len(c.new) == 0 {
			c.modes = "new file mode " + after + "\n"
		}
	case after == "":
		c.Action = ActionDelete
		if before != usual || len(c.old) == 0 {
			c.modes = "deleted file mode " + before + "\n"
		}
	case before != after:
		c.modes = "old mode " + before + "\nnew mode " + after + "\n"
	}
	return c
}

// Before is the content that the file had when the change was planned; nil stands for no file.
func (c *Change) Before() []byte { return c.old }

// Diff is the change as a unified diff for people.
func (c *Change) Diff() string { return c.diff() }

// Write adds files to the set. A later file of the same path takes the place of an earlier one, or of its deletion.
func (cs *ChangeSet) Write(files ...File) {
	for _, f := range files {
		cs.forget(f.Path)
		cs.files = append(cs.files, f)
	}
}

// Delete adds deletions to the set, in place of earlier writes to the same paths. A file that is not there is no error.
func (cs *ChangeSet) Delete(paths ...string) {
	for _, p := range paths {
		cs.forget(p)
		cs.deletes = append(cs.deletes, p)
	}
}

func (cs *ChangeSet) forget(name string) {
	cs.files = slices.DeleteFunc(cs.files, func(f File) bool { return f.Path == name })
	cs.deletes = slices.DeleteFunc(cs.deletes, func(p string) bool { return p == name })
}

// Forget removes paths from the set, so that their files stay unchanged.
func (cs *ChangeSet) Forget(paths ...string) {
	for _, p := range paths {
		cs.forget(p)
	}
}

// Paths are all paths that the set writes or deletes, sorted, including files that already have the wanted content.
func (cs *ChangeSet) Paths() []string {
	paths := slices.Clone(cs.deletes)
	for _, f := range cs.files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	return paths
}

// Empty tells whether the set holds nothing at all. A set that is not empty may still change nothing: see Plan.
func (cs *ChangeSet) Empty() bool { return len(cs.files) == 0 && len(cs.deletes) == 0 }

// Files are the files that the set writes, sorted by path.
func (cs *ChangeSet) Files() []File {
	return slices.SortedFunc(slices.Values(cs.files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
}

// Plan compares the set with the folder root and returns what differs, sorted by path; it changes nothing. A path that leads
// out of root, through a symbolic link or otherwise, into Git's own folder, or to something that is no regular file is an error.
// A root that does not exist is an empty one.
func (cs *ChangeSet) Plan(root string) ([]Change, error) {
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return cs.plan(nil)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	defer r.Close()
	return cs.plan(r)
}

func (cs *ChangeSet) plan(root *os.Root) ([]Change, error) {
	wanted, err := cs.wanted()
	if err != nil {
		return nil, err
	}
	changes := make([]Change, 0, len(wanted))
	for _, w := range wanted {
		exists, err := w.readOld(root)
		if err != nil {
			return nil, err
		}
		if w.differs(exists) {
			changes = append(changes, w)
		}
	}
	return changes, nil
}

// wanted lists what the set asks for, without a look at the disk: sorted, paths checked, no path below another.
func (cs *ChangeSet) wanted() ([]Change, error) {
	all := make([]Change, 0, len(cs.files)+len(cs.deletes))
	for _, f := range cs.files {
		all = append(all, Change{Path: f.Path, Action: ActionUpdate, new: f.Content, newMode: f.Mode.Perm()})
	}
	for _, p := range cs.deletes {
		all = append(all, Change{Path: p, Action: ActionDelete})
	}
	for i := range all {
		local, err := inRepo(all[i].Path)
		if err != nil {
			return nil, err
		}
		all[i].local, all[i].Path = local, filepath.ToSlash(local)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.Path] {
			return nil, fmt.Errorf("path %q is changed twice", c.Path)
		}
		seen[c.Path] = true
	}
	for _, c := range all {
		for dir := filepath.Dir(c.local); dir != "."; dir = filepath.Dir(dir) {
			if seen[filepath.ToSlash(dir)] {
				return nil, fmt.Errorf("path %q is both a file and the folder of %q", filepath.ToSlash(dir), c.Path)
			}
		}
	}
	return all, nil
}

// maxOld bounds the bytes of a file that a change replaces or deletes. No commit that fleetctl fetches has a larger one.
const maxOld = 256 << 20

// readOld fills in what stands at the change's path now.
func (c *Change) readOld(root *os.Root) (exists bool, err error) {
	if root == nil {
		return false, nil
	}
	info, err := root.Lstat(c.local)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", c.Path, err)
	}
	if !info.Mode().IsRegular() {
		return false, diag.Errorf("put a file with the content that is meant in its place: Flux follows no links, and fleetctl does not either",
			"%s is not a regular file (%s)", c.Path, info.Mode().Type())
	}
	c.oldMode = info.Mode().Perm()
	if c.old, err = within.Read(root, filepath.ToSlash(c.local), maxOld); err != nil {
		return false, fmt.Errorf("read %s: %w", c.Path, err)
	}
	return true, nil
}

// differs settles the action and tells whether there is anything to do.
func (c *Change) differs(exists bool) bool {
	switch {
	case c.Action == ActionDelete:
		return exists
	case !exists:
		c.Action = ActionCreate
		return true
	}
	modeDiffers := c.newMode != 0 && c.newMode != c.oldMode && runtime.GOOS != "windows"
	if c.newMode == 0 {
		c.newMode = c.oldMode
	}
	return modeDiffers || !bytes.Equal(c.old, c.new)
}

// Diff is what changes do, as a unified diff for people; empty if they are none.
func Diff(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.diff())
	}
	return b.String()
}

func (c *Change) diff() string {
	name := plain.Line(c.Path)
	from, to := "a/"+name, "b/"+name
	head := c.modes
	if head != "" {
		head = "diff --git " + from + " " + to + "\n" + head
	}
	switch c.Action {
	case ActionCreate:
		from = os.DevNull
	case ActionDelete:
		to = os.DevNull
	case ActionUpdate:
		switch {
		case !bytes.Equal(c.old, c.new):
		case head != "":
			return head + "\n" // without the empty line, git apply takes the next file for this one
		default:
			return fmt.Sprintf("mode of %s: %o -> %o\n", name, c.oldMode, c.newMode)
		}
	}
	if bytes.IndexByte(c.old, 0) >= 0 || bytes.IndexByte(c.new, 0) >= 0 {
		return fmt.Sprintf("%sbinary files %s and %s differ\n", head, from, to)
	}
	if len(c.old) == 0 && len(c.new) == 0 {
		if head != "" {
			return head + "\n"
		}
		return fmt.Sprintf("--- %s\n+++ %s\n", from, to)
	}
	return head + udiff.Unified(from, to, string(c.old), string(c.new))
}
