package following

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Checkout is a fleet repo as a Flux reads it from the remote, whatever the clone on this machine has.
type Checkout struct {
	// Dir has the files. Without a remote it is the clone itself.
	Dir string
	// Differs says in words how the clone differs from the remote. It is "" if it does not.
	Differs string

	remove func() error
}

// View returns what the checkout has.
func (c *Checkout) View() View { return View{dir: c.Dir} }

// Remove removes the files, unless they are the clone itself.
func (c *Checkout) Remove() {
	if c.remove != nil {
		_ = c.remove() // temporary files
	}
}

// CheckOut reads the branch of the remote of the fleet repo whose clone is in dir, as the cluster's Flux will read it. It warns if the
// clone differs from the remote. If the remote cannot be read, it warns of that, and returns the clone. It does not change the clone.
func (r Rehearsal) CheckOut(ctx context.Context, dir, branch string, auth gitrepo.Auth) (*Checkout, error) {
	out, err := checkOut(ctx, dir, branch, auth)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		r.Warn(fmt.Sprintf("what the Flux of %s would do is tried with the clone of the fleet repo in %s alone: what the remote has is not "+
			"known: %v", r.Name, dir, err))
		return &Checkout{Dir: dir}, nil
	}
	if out.Differs != "" {
		r.Warn(fmt.Sprintf("the clone of the fleet repo in %s is not what the remote has, which the Flux of %s reads, and which is tried: %s",
			dir, r.Name, out.Differs))
	}
	return out, nil
}

func checkOut(ctx context.Context, dir, branch string, auth gitrepo.Auth) (*Checkout, error) {
	clone := &Checkout{Dir: dir}
	git, err := gitrepo.Open(dir)
	if errors.Is(err, gitrepo.ErrNotARepository) {
		return clone, nil
	}
	if err != nil {
		return nil, err
	}
	url, tracked, err := git.Remote()
	if err != nil || url == "" {
		return clone, err
	}
	revision, err := git.FetchBranch(ctx, auth)
	if err != nil || revision == "" {
		return clone, err
	}
	out := &Checkout{}
	if out.Dir, out.remove, err = atomicfile.TempFolder("", "remote"); err != nil {
		return nil, diag.Wrap("make a folder for what the remote has", err, "free some space, or set TMPDIR")
	}
	if err := writeCommit(git, revision, out.Dir); err != nil {
		out.Remove()
		return nil, fmt.Errorf("read commit %s of the remote: %w", revision, err)
	}
	if out.Differs, err = differs(ctx, git, auth, revision); err != nil {
		out.Remove()
		return nil, err
	}
	if branch != "" && tracked != branch {
		out.Differs = fmt.Sprintf("its branch %s is checked out here, and Flux follows %s", tracked, branch)
	}
	return out, nil
}

// differs compares the clone with a commit of the remote that was fetched.
func differs(ctx context.Context, git *gitrepo.Repo, auth gitrepo.Auth, revision string) (string, error) {
	head, err := git.Head()
	if err != nil {
		return "", err
	}
	if head == revision {
		dirty, err := git.Dirty(ctx)
		if err != nil || len(dirty) == 0 {
			return "", err
		}
		return "it has changes that are in no commit: " + plain.Names(dirty, mostNamed), nil
	}
	if behind, err := git.Includes(ctx, auth, revision, head); err != nil {
		return "", err
	} else if behind || head == "" {
		return fmt.Sprintf("it is at the commit %.8s, and the remote has newer ones, up to %.8s (git pull)", head, revision), nil
	}
	unpushed, err := git.Unpushed(ctx)
	if err != nil {
		return "", err
	}
	return "it has commits that the remote does not have (git push): " + plain.Phrases(unpushed, mostNamed), nil
}
