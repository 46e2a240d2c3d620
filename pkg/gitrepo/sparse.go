package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// CheckSparse returns an error if a sparse checkout leaves files of the Git repository with the top dir out of the working tree, and one of
// them matters. Whoever reads the working tree would take these files for deleted, and whoever writes would write over them. A folder that
// is not the top of a repository, or whose repository cannot be read, has no such files: who needs Git there says what is wrong. matters
// is given dir, and is called only for a checkout that is or was sparse.
func CheckSparse(ctx context.Context, dir string, matters func(dir string) func(file string) bool) error {
	r, err := Open(dir)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if _, err := os.Lstat(filepath.Join(r.gitDir, "info", "sparse-checkout")); err != nil {
		return nil //nolint:nilerr // the checkout was never sparse
	}
	files, err := r.unseen(ctx)
	if err != nil {
		return err
	}
	isPart := matters(dir)
	files = slices.DeleteFunc(files, func(file string) bool { return !isPart(file) || !r.lacks(file) })
	if len(files) == 0 {
		return nil
	}
	return diag.Errorf("`git sparse-checkout disable`, or only what is needed: `"+
		diag.ShellCommand(append([]string{"git", "sparse-checkout", "add"}, tops(files)...)...)+"`",
		"this clone is sparse: %s of the fleet repo %s not checked out (%s)", plain.Count(len(files), "file"), plain.Are(len(files)),
		plain.Names(files, 3))
}

// lacks tells whether the working tree has nothing where this file of the index belongs.
func (r *Repo) lacks(file string) bool {
	if checkPath(file) != nil {
		return false
	}
	_, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(file)))
	return errors.Is(err, fs.ErrNotExist)
}

// tops returns the top folders of files, sorted. A sparse checkout always has the files that are in no folder, unless it goes by patterns.
func tops(files []string) []string {
	var all []string
	for _, file := range files {
		top, _, _ := strings.Cut(file, "/")
		all = append(all, top)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
