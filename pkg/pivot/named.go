package pivot

import (
	"context"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// named returns the change by which the fleet repo names a cluster, which has taken over, as the management cluster.
func named(ctx context.Context, s *session.Session, client *kube.Client, root string) ([]gitrepo.Change, error) {
	id, err := standing.Identity(ctx, s, client, root, true)
	if err != nil || id == nil {
		return nil, err
	}
	return []gitrepo.Change{{Path: id.Path, Content: id.Content}}, nil
}

// nameTarget names the target, which has taken over, in the fleet repo, with which other machines compare what they know. The pivot has
// happened, whatever the remote says, so a commit that it refuses is a warning.
func (p *Move) nameTarget(
	ctx context.Context, target *Target, commit *following.Pushed, endpoint *repoaccess.Endpoint, detail func(string),
) error {
	s := p.session
	pushed := &following.Pushed{Session: s, Access: commit.Access, Repo: commit.Repo}
	message := fmt.Sprintf("%s is %s from now on\n\nWritten by fleetctl pivot.\n", s.Mgmt.Name, target.Name)
	wanted := func(ctx context.Context, root string) ([]gitrepo.Change, error) {
		return named(ctx, s, target.client, root)
	}
	made, nothing, err := converge.CommitTo(ctx, s, endpoint, pushed, message, wanted, detail)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		s.Deps.Report.Warn(fmt.Sprintf("the fleet repo does not name %s as the management cluster yet; `fleetctl init` there does (%v)",
			target.Name, err))
		return steps.NothingToDo("the fleet repo does not take it")
	case !made:
		return nothing
	}
	commit.Revision = pushed.Revision // its Flux is to apply that one
	return nil
}
