package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// dirtyByGit is Dirty as git sees it: it knows of indexes that go-git cannot read, and of large repositories what has not changed.
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
			dirty = append(dirty, strings.TrimSuffix(entry[state:], "/")) // another repository that is in no commit has one
		}
	}
	slices.Sort(dirty)
	return dirty, nil
}
