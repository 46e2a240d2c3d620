package gitrepo

import (
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// RemoteState is the state of a remote, as Probe finds it.
type RemoteState struct {
	// Empty says that the remote has no branch at all.
	Empty bool
	// BranchExists says that the remote has the branch.
	BranchExists bool
	// Head is the commit of the branch as 40 hexadecimal digits, or "".
	Head string
	// DefaultBranch is the branch that a clone would check out; "" if the server does not say.
	DefaultBranch string
}

// Probe reads the state of a remote and of one of its branches. It changes nothing. If the cause of an error is known, the error matches
// ErrURL, ErrAuth, ErrNotFound, ErrNetwork, ErrHostKey or ErrTLS, and has a hint.
func Probe(ctx context.Context, url string, auth Auth, branch string) (*RemoteState, error) {
	r, err := openNamed(url, auth)
	if err != nil {
		return nil, err
	}
	const verb = "read"
	session, err := r.upload(ctx)
	if err != nil {
		return nil, r.fail(verb, err)
	}
	defer func() { _ = session.Close() }() // everything has been read
	refs, err := advertised(ctx, session)
	if err != nil {
		return nil, r.fail(verb, err)
	}
	state := &RemoteState{Empty: len(refs.References) == 0, DefaultBranch: defaultBranch(refs)}
	if head, ok := refs.References[plumbing.NewBranchReferenceName(branch).String()]; ok {
		state.BranchExists, state.Head = true, head.String()
	}
	return state, nil
}

// advertised returns the references that the server shows. An empty repository has none, which is no error.
func advertised(ctx context.Context, session transport.Session) (*packp.AdvRefs, error) {
	refs, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return packp.NewAdvRefs(), nil
	}
	return refs, err
}

func defaultBranch(refs *packp.AdvRefs) string {
	all, err := refs.AllReferences()
	if err != nil {
		return ""
	}
	head, err := all.Reference(plumbing.HEAD)
	if err != nil || head.Type() != plumbing.SymbolicReference {
		return ""
	}
	return head.Target().Short()
}
