package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// transaction is a move of references from one object to another, for which git runs the hook reference-transaction.
type transaction struct {
	refs     []plumbing.ReferenceName
	from, to plumbing.Hash
}

// transact moves references by calling do. As with git, the hook runs before the move, with the references locked, and may refuse it. It
// runs again after the move, with the result.
func (r *Repo) transact(ctx context.Context, all settings, t transaction, do func() error) error {
	if path, err := r.hook(all, hookTransaction); err != nil {
		return err
	} else if path == "" {
		return do()
	}
	var input strings.Builder
	for _, ref := range t.refs {
		fmt.Fprintf(&input, "%s %s %s\n", t.from, t.to, ref)
	}
	tell := func(ctx context.Context, state string) error {
		return r.runHook(ctx, all, hookTransaction, nil, input.String(), state)
	}
	err := tell(ctx, "prepared")
	if err == nil {
		err = do()
	}
	after := context.WithoutCancel(ctx)
	if err != nil {
		_ = tell(after, "aborted") // git ignores this exit code too
		return err
	}
	_ = tell(after, "committed")
	return nil
}

// remember sets a remote-tracking branch.
func (r *Repo) remember(ctx context.Context, ref plumbing.ReferenceName, commit plumbing.Hash) error {
	set := func() error { return r.git.Storer.SetReference(plumbing.NewHashReference(ref, commit)) }
	from, err := r.reference(ref)
	switch {
	case err != nil:
		return err
	case from == commit: // no move
		return set()
	}
	all, err := r.settings(ctx)
	if err != nil {
		return err
	}
	return r.transact(ctx, all, transaction{[]plumbing.ReferenceName{ref}, from, commit}, set)
}
