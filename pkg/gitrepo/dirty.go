package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	git "github.com/go-git/go-git/v5"
)

// Dirty returns the files that differ from the last commit or are untracked, but not ignored files, sorted. It also returns changed files
// that git was told not to look at (assume-unchanged, skip-worktree).
func (r *Repo) Dirty(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dirty, err := r.dirtySeen(ctx)
	if err != nil {
		return nil, err
	}
	unseen, err := r.dirtyUnseen(ctx)
	if err != nil || len(unseen) == 0 {
		return dirty, err
	}
	dirty = append(dirty, unseen...)
	slices.Sort(dirty)
	return slices.Compact(dirty), nil
}

// dirtySeen is Dirty for the files that git looks at.
func (r *Repo) dirtySeen(ctx context.Context) ([]string, error) {
	if gitProgram() != "" {
		return r.dirtyByGit(ctx)
	}
	tree, err := r.git.Worktree()
	if err != nil {
		return nil, fmt.Errorf("look at the working tree %s: %w", r.dir, err)
	}
	status, err := tree.Status()
	if err != nil {
		return nil, fmt.Errorf("look at the working tree %s: %w", r.dir, err)
	}
	w, err := r.worktree(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var dirty []string
	for p, s := range status {
		if s.Worktree == git.Modified && s.Staging == git.Unmodified {
			// go-git compares bytes; the user's git may have changed line ends, or passed them through a filter.
			if same, err := r.unchanged(ctx, w, p); err == nil && same {
				continue
			}
		}
		if s.Worktree != git.Unmodified || s.Staging != git.Unmodified {
			dirty = append(dirty, p)
		}
	}
	slices.Sort(dirty)
	return dirty, nil
}

// dirtyByGit is dirtySeen by the git program. git can read indexes that go-git cannot read, and is faster in large repositories.
func (r *Repo) dirtyByGit(ctx context.Context) ([]string, error) {
	out, err := r.runGit(ctx, nil, nil, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
	if err != nil {
		if _, refused := r.settings(ctx); errors.Is(refused, ErrUntrusted) {
			err = refused
		}
		return nil, fmt.Errorf("look at the working tree %s: %w", r.dir, err)
	}
	var dirty []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		const state = len("XY ")
		if len(entry) > state {
			dirty = append(dirty, strings.TrimSuffix(entry[state:], "/")) // git writes a slash after an untracked repository
		}
	}
	slices.Sort(dirty)
	return dirty, nil
}
