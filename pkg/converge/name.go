package converge

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// StepName names the cluster that has taken over in the fleet repo: see Name.
const StepName = "name it in the fleet repo"

// NameStep is Name as a step between those of init, after the step that gives the cluster its work.
func (r *Run) NameStep(takesOver string) steps.Step {
	name := func(
		ctx context.Context, client *kube.Client, commit *following.Pushed, endpoint *repoaccess.Endpoint, detail func(string),
	) error {
		return Name(ctx, client, commit, endpoint, Naming{Name: r.Session.Mgmt.Name, By: "fleetctl restore"}, detail)
	}
	return steps.Step{
		Name: StepName, Needs: []string{takesOver}, Work: steps.Do3(name, r.Client, r.Pushed, r.Endpoint), Timeout: 5 * time.Minute,
		Hint: "it has taken over; run the same command again",
	}
}

// Naming says what the commit of Name is about: the cluster that has taken over, and the command.
type Naming struct{ Name, By string }

// Name makes the fleet repo name the cluster that client reaches, which has taken over, as the management cluster: other machines compare
// what they know with that. Before the cluster has the work, an abort would leave a name there of a cluster that manages nothing. The
// cluster has taken over whatever the remote says, so a commit that the remote refuses is a warning. Flux is to apply commit, which Name
// moves on.
func Name(
	ctx context.Context, client *kube.Client, commit *following.Pushed, endpoint *repoaccess.Endpoint, of Naming, detail func(string),
) error {
	s := commit.Session
	pushed := &following.Pushed{Session: s, Access: commit.Access, Repo: commit.Repo}
	message := fmt.Sprintf("%s is %s from now on\n\nWritten by %s.\n", s.Mgmt.Name, of.Name, of.By)
	if of.Name == s.Mgmt.Name {
		message = fmt.Sprintf("%s is another cluster from now on\n\nWritten by %s.\n", s.Mgmt.Name, of.By)
	}
	wanted := func(ctx context.Context, root string) ([]gitrepo.Change, error) {
		return standing.Identity(ctx, s, client, root, true)
	}
	made, nothing, err := CommitTo(ctx, s, endpoint, pushed, message, wanted, detail)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		s.Deps.Report.Warn(unnamed(ctx, s, client, of.Name, err))
		return steps.NothingToDo("the fleet repo does not take it")
	case !made:
		return nothing
	}
	commit.Revision = pushed.Revision // its Flux is to apply that one
	return nil
}

// unnamed is the warning about a fleet repo that does not take the name, and how to bring the name there.
func unnamed(ctx context.Context, s *session.Session, client *kube.Client, name string, why error) string {
	says := fmt.Sprintf("the fleet repo does not name %s as the management cluster yet; `fleetctl init` there does", name)
	if uid, err := handover.ClusterUID(ctx, client); err == nil {
		says += fmt.Sprintf(", or a commit, by a pull request too, whose %s has this one line: uid: %s", s.Layout().Identity(), uid)
	}
	return says + " " + diag.Because(why)
}
