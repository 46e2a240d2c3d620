package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// promoting is where a repository notes the tags that it makes and has not pushed yet. It fetches and pushes none of these references.
const promoting = "refs/fleetctl/promoting/"

// MarkTag notes that this repository is about to make a tag of a commit, and to push it. A run that finds the mark knows that the tag has
// never been at the remote, unless the run before it was killed right after the push.
func (r *Repo) MarkTag(ctx context.Context, name, commit string) error {
	hash := plumbing.NewHash(commit)
	ref := plumbing.ReferenceName(promoting + name)
	err := r.drop(ctx, ref, func(at plumbing.Hash) (bool, error) { return at != hash, nil })
	if err == nil {
		err = r.newReference(ctx, ref, hash)
	}
	if err != nil {
		return fmt.Errorf("mark the tag %s as not pushed: %w", name, err)
	}
	return nil
}

// UnmarkTag removes the mark of MarkTag. One that is not there is no error.
func (r *Repo) UnmarkTag(ctx context.Context, name string) error {
	err := r.drop(ctx, plumbing.ReferenceName(promoting+name), func(plumbing.Hash) (bool, error) { return true, nil })
	if err != nil {
		return fmt.Errorf("remove the mark of the tag %s: %w", name, err)
	}
	return nil
}

// MarkedTags returns the commits of MarkTag, by the tags' names.
func (r *Repo) MarkedTags() (map[string]string, error) {
	refs, err := r.git.References()
	if err != nil {
		return nil, fmt.Errorf("list the references of %s: %w", r.dir, err)
	}
	marked := map[string]string{}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if name, is := strings.CutPrefix(ref.Name().String(), promoting); is {
			marked[name] = ref.Hash().String()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the references of %s: %w", r.dir, err)
	}
	return marked, nil
}
