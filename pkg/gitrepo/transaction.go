package gitrepo

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// transaction is a move of references from one object to another, of which git tells its hook reference-transaction.
type transaction struct {
	refs     []plumbing.ReferenceName
	from, to plumbing.Hash
}

// transact moves references by do. As with git, the hook hears of the move before it, with the references locked, and may refuse it; and it
// hears how the move went.
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
		_ = tell(after, "aborted") // whose answer git does not ask for
		return err
	}
	_ = tell(after, "committed")
	return nil
}

// remember notes where a branch of the remote is.
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
