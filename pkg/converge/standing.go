package converge

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// The checks that nobody may skip: they are about what is somebody else's.
const (
	CheckFleetName = "fleet"
	CheckFluxName  = "flux"
)

func mayBeSkipped(check string) bool {
	return !slices.Contains([]string{CheckFleetName, CheckFluxName}, check)
}

// Standing is a management cluster that is there already: whose it is, and a way to ask it for more.
type Standing struct {
	Client *kube.Client
	Claim  *ownership.Claim
}

// FindStanding looks at the management cluster; nil where there is none that runs.
func FindStanding(ctx context.Context, s *session.Session) (*Standing, error) {
	st, err := s.Host.State(ctx)
	if err != nil || st != host.StateRunning {
		return nil, err
	}
	client, err := management.Reach(ctx, s.Host)
	if err != nil {
		return nil, err
	}
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	return &Standing{Client: client, Claim: there}, nil
}

// checks are those of a session. What asks the management cluster, if there is one, shares one connection, and one answer to whose it is.
type checks struct {
	session *session.Session
	// goesOn says that a hand-over or a restore is under way, and that the run of which these are the checks goes on with it.
	goesOn bool
	found  session.Lookup[*Standing]
}

// standing is FindStanding, once for all of them.
func (c *checks) standing(ctx context.Context) (*Standing, error) {
	return c.found.Once(func() (*Standing, error) { return FindStanding(ctx, c.session) })
}

const (
	noHost        = "nothing to look at: see name"
	noClusterText = "there is no cluster yet"
)

// checkFleet looks whether the management cluster belongs to this fleet, or to none.
func (c *checks) checkFleet(ctx context.Context) preflight.Result {
	if c.session.Stranger != nil {
		return preflight.FailWith(c.session.Stranger)
	}
	if c.session.HostErr != nil {
		return preflight.Skip(noHost)
	}
	there, err := c.standing(ctx)
	switch {
	case err != nil:
		return unanswered(c.session, err)
	case there == nil:
		return checkMark(ctx, c.session)
	}
	if err := c.session.CheckClaim(there.Claim); err != nil {
		return preflight.FailWith(err)
	}
	if !c.goesOn {
		if _, err := RefuseHandedOver(ctx, c.session, there.Client); err != nil {
			return unanswered(c.session, err)
		}
	}
	if there.Claim == nil {
		return preflight.OK("the cluster belongs to no fleet yet")
	}
	return preflight.OK("the cluster is this fleet's")
}

// checkMark looks at what can be told of a host that does not run.
func checkMark(ctx context.Context, s *session.Session) preflight.Result {
	marked, ok := s.Host.(host.Marked)
	if !ok {
		return preflight.Skip(noClusterText)
	}
	id, err := marked.Fleet(ctx)
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case id == "":
		return preflight.Skip(noClusterText + ", or it does not run")
	case id != s.Identity() && !s.Provisional:
		return preflight.Fail(ownership.ChooseNameHint, "there is a management cluster %s of another fleet (%.8s), which does not run",
			s.Mgmt.Name, id)
	case id != s.Identity():
		return preflight.Fail("start it first (`fleetctl host start`): then it can be asked; or "+ownership.ChooseNameHint,
			"there is a management cluster %s that does not run, and nothing tells that it is this fleet's", s.Mgmt.Name)
	}
	return preflight.OK("the cluster is this fleet's, and does not run")
}

// unanswered is where an API server that should answer does not. A record of ours says enough until it does: before anything is installed
// it is asked again.
func unanswered(s *session.Session, err error) preflight.Result {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return preflight.Skip("the user may not look there; init refuses then: see name")
	}
	if record, loadErr := s.Cluster.Load(); kube.IsUnreachable(err) && loadErr == nil && record.FleetID == s.Identity() {
		return preflight.Skip("its API server does not answer; it is asked again before anything is installed")
	}
	return preflight.FailWith(err)
}

// checkFlux looks at what the Flux of the management cluster follows.
func (c *checks) checkFlux(ctx context.Context) preflight.Result {
	if c.session.Stranger != nil || c.session.HostErr != nil {
		return preflight.Skip("nothing to look at: see fleet and name")
	}
	there, err := c.standing(ctx)
	switch {
	case err != nil:
		return unanswered(c.session, err)
	case there == nil:
		return preflight.Skip(noClusterText)
	}
	if err := checkFollowing(ctx, c.session, there.Client, there.Claim, RepoView{}); err != nil {
		return unanswered(c.session, err)
	}
	now, err := fluxNow(ctx, c.session, there.Client, there.Claim, RepoView{})
	switch {
	case err != nil:
		return unanswered(c.session, err)
	case now != nil: // --take-over-flux
		return preflight.Warn("", "it follows %s, and is taken over: %d objects that it applied and this repo does not have are kept",
			now.Follows, len(now.WouldDelete))
	}
	return preflight.OK("it may follow this fleet repo")
}

// standingForDryRun is FindStanding for a dry run, which needs no host, and no cluster that answers: without them it is nil.
func standingForDryRun(ctx context.Context, s *session.Session) (*Standing, error) {
	if s.HostErr != nil {
		return nil, nil //nolint:nilerr // what a dry run can do without
	}
	there, err := FindStanding(ctx, s)
	if kube.IsUnreachable(err) {
		return nil, nil
	}
	return there, err
}

// PlanFollowing is what a dry run says of the Flux that is there; nil where there is nothing to say.
func PlanFollowing(ctx context.Context, s *session.Session, have RepoView) (*FluxNow, error) {
	there, err := standingForDryRun(ctx, s)
	if there == nil || err != nil {
		return nil, err
	}
	if err := s.CheckClaim(there.Claim); err != nil {
		return nil, err
	}
	now, err := fluxNow(ctx, s, there.Client, there.Claim, have)
	return now, diag.Wrap("look at what Flux follows", err, "")
}

// RefuseHandedOver refuses to make a management cluster of one that has handed its work over, or is about to: two would act on the same
// machines. Nor does it make a standby of one that has work: that would stop with its providers. It returns the journal that it has read;
// nil where there is none.
func RefuseHandedOver(ctx context.Context, s *session.Session, client *kube.Client) (*handover.Journal, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, err
	}
	if journal != nil {
		err = RefuseJournal(s, journal)
	}
	if err == nil && s.StandbyOf != "" {
		err = handover.RefuseWork(ctx, s.Side(client))
	}
	return journal, err
}

// RefuseJournal refuses a management cluster whose journal says that its work is, or is about to be, another's, or that it waits for
// another's.
func RefuseJournal(s *session.Session, journal *handover.Journal) error {
	switch {
	case journal.IsStandby() && s.StandbyOf == "":
		return handover.AtRest("the management cluster "+s.Mgmt.Name, journal)
	case journal.Activates && (journal.Active() || s.StandbyOf != "" && journal.Role == handover.RoleTarget):
		return diag.Errorf("`"+journal.Command()+"` goes on with it", "%s is taking over from %s", s.Mgmt.Name, journal.Source.Name)
	}
	if journal.Snapshot != "" && journal.Phase != handover.PhaseReleased {
		return diag.Errorf("`fleetctl restore` goes on with it, `fleetctl restore --abort` undoes it",
			"the management cluster %s is being restored from the snapshot %s", s.Mgmt.Name, journal.Snapshot)
	}
	if journal.Around && journal.Active() {
		return handover.BeingFenced("the management cluster "+s.Mgmt.Name, journal)
	}
	if journal.Detach && journal.Phase != handover.PhaseReleased {
		return handover.BeingDetached("the management cluster "+s.Mgmt.Name, journal)
	}
	if !journal.Whole() {
		if journal.Active() && !journal.Detach {
			return handover.InTheMiddle("the management cluster "+s.Mgmt.Name, journal)
		}
		return nil // it goes on with its other clusters
	}
	if journal.Role != handover.RoleSource {
		return nil
	}
	if journal.Phase.Committed() {
		return diag.Errorf("work with "+journal.Target.Name+
			"; `fleetctl pivot` finishes what may be left to do, and `fleetctl host delete` ends this one",
			"the management cluster %s has handed its work over to %s", s.Mgmt.Name, journal.Target.Name)
	}
	return diag.Errorf("`fleetctl pivot` goes on with it, `fleetctl pivot --abort` undoes it",
		"the management cluster %s is being handed over to %s", s.Mgmt.Name, journal.Target.Name)
}
