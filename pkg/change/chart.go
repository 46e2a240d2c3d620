package change

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// ChartHistory looks up charts in the history of the fleet repo whose top is dir. A folder that is no Git repository
// has no history.
func ChartHistory(ctx context.Context, dir string) fleetrepo.ChartHistory {
	return func(name, sha256 string) ([]manifest.File, error) {
		git, err := gitrepo.Open(dir)
		if errors.Is(err, gitrepo.ErrNotARepository) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		head, err := git.Resolve("HEAD")
		if errors.Is(err, gitrepo.ErrNoRevision) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		commits, err := git.Log(ctx, head, "")
		if err != nil {
			return nil, err
		}
		folder := path.Join(layout.ChartsDir, name)
		for _, c := range commits {
			if !slices.ContainsFunc(c.Files, func(file string) bool { return strings.HasPrefix(file, folder+"/") }) {
				continue
			}
			files, err := filesAt(git, c.Hash, folder)
			if err != nil {
				return nil, err
			}
			if scaffold.Digest(files) == sha256 {
				return files, nil
			}
		}
		return nil, nil
	}
}

// filesAt returns the files of a folder in a commit. It returns none if the commit has no such folder.
func filesAt(git *gitrepo.Repo, commit, folder string) ([]manifest.File, error) {
	tree, err := git.Files(commit)
	if err != nil {
		return nil, err
	}
	var files []manifest.File
	err = fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		files = append(files, manifest.File{Path: name, Content: content})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}
