package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Revert returns the edit that reverts a commit of the fleet repo and keeps later commits. The revision is resolved when the edit is made
// for the first time, because HEAD is another commit when the edit is repeated on top of new commits. Errors of the edit: an unknown
// revision, a merge, and all lines that later commits have changed, with their files.
func Revert(ctx context.Context, revision string) func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	settled := ""
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		git, err := gitrepo.OpenFor("revert "+revision, r.WorkTree, "the fleet repo has to be the top of a Git repository")
		if err != nil {
			return nil, err
		}
		if settled == "" {
			if settled, err = git.Resolve(revision); err != nil {
				return nil, err
			}
		}
		return revert(ctx, r, git, settled)
	}
}

func revert(ctx context.Context, r *fleetrepo.Repo, git *gitrepo.Repo, hash string) (*fleetrepo.Edit, error) {
	commit, before, err := commitToRevert(ctx, git, hash)
	if err != nil {
		return nil, err
	}
	after, err := git.Files(commit.Hash)
	if err != nil {
		return nil, err
	}
	e := &fleetrepo.Edit{
		Summary: fmt.Sprintf("Revert %q (%.8s)", commit.Subject, commit.Hash),
		Notes:   []string{"`fleetctl diff` tells what the change does to the clusters."},
	}
	var conflicts diag.Findings
	for _, name := range commit.Files {
		if !regular(before, name) || !regular(after, name) {
			conflicts = append(conflicts, diag.Finding{
				Severity: diag.SeverityError, Rule: "revert-conflict", File: name,
				Summary: "it is a link or a submodule, which fleetctl does not revert",
				Hint:    "`" + diag.ShellCommand("git", "revert", hash) + "`, then look at `fleetctl diff " + hash[:8] + "`",
			})
			continue
		}
		was, errWas := fileIn(after, name)
		wanted, errWanted := fileIn(before, name)
		now, errNow := fileHere(r.Dir, name)
		if err := errors.Join(errWas, errWanted, errNow); err != nil {
			return nil, fmt.Errorf("revert %s: %w", hash, err)
		}
		merged, ok := manifest.MergeText(was, now, wanted)
		switch {
		case !ok:
			conflicts = append(conflicts, diag.Finding{
				Severity: diag.SeverityError, Rule: "revert-conflict", File: name, Summary: "later commits have changed the same lines",
				Hint: "revert the later commits first, the newest to begin with, or change the file in an editor",
			})
		case merged == nil && now != nil:
			e.Changes.Delete(name)
		case merged != nil:
			e.Changes.Write(manifest.File{Path: name, Content: merged, Mode: modeBack(before, after, name)})
		}
	}
	e.Notes = append(e.Notes, r.Unpromoted(r.EnvironmentsOf(commit.Files))...)
	return e, conflicts.Err()
}

// commitToRevert returns the commit, and the files before it.
func commitToRevert(ctx context.Context, git *gitrepo.Repo, hash string) (*gitrepo.Commit, fs.FS, error) {
	parent, err := git.Resolve(hash + "~1")
	if err != nil {
		if shallow, _ := git.Shallow(); shallow {
			return nil, nil, diag.Errorf("git fetch --unshallow, then run the same command again",
				"this clone has only the newest commits, and not the one before %.8s, which has the files to go back to", hash)
		}
		return nil, nil, diag.Errorf("change the files in an editor", "commit %.8s is the first one here: there is nothing to go back to", hash)
	}
	commits, err := git.Log(ctx, hash, parent)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(commits, func(c gitrepo.Commit) bool { return c.Hash == hash })
	if i < 0 {
		return nil, nil, fmt.Errorf("commit %s is not in the history of the branch", hash)
	}
	if commits[i].Merge {
		return nil, nil, diag.Usage("revert the commits that it merged", "commit %.8s is a merge: it does not say which side was wrong", hash)
	}
	before, err := git.Files(parent)
	return &commits[i], before, err
}

// regular tells whether a name is that of a regular file, or of none.
func regular(files fs.FS, name string) bool {
	info, err := fs.Stat(files, filepath.ToSlash(name))
	return err != nil || info.Mode().IsRegular() // an error comes again where the content is read
}

// modeBack returns the permissions that a file had before the commit, or 0 if the commit did not change them.
func modeBack(before, after fs.FS, name string) fs.FileMode {
	wanted, was := permissions(before, name), permissions(after, name)
	if wanted == was {
		return 0
	}
	return wanted
}

// permissions returns those of a file, or those of a new one if there is none.
func permissions(files fs.FS, name string) fs.FileMode {
	info, err := fs.Stat(files, filepath.ToSlash(name))
	if err != nil {
		return 0o644
	}
	return info.Mode().Perm()
}

// fileHere is fileIn of a working tree.
func fileHere(dir, name string) ([]byte, error) {
	const most = 1 << 30
	content, err := within.ReadFile(dir, filepath.ToSlash(name), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// fileIn is a file's content, or nil if the file does not exist.
func fileIn(files fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(files, filepath.ToSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && content == nil {
		content = []byte{}
	}
	return content, err
}
