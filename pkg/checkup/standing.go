package checkup

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
)

// The names of the checks that nobody may skip, because they look at what may belong to somebody else.
const (
	Fleet = "fleet"
	Flux  = "flux"
)

// Downloads is the check of the servers that init downloads from.
const Downloads = "downloads"

// MayBeSkipped tells whether --skip-preflight has an effect on a check.
func MayBeSkipped(check string) bool {
	return !slices.Contains([]string{Fleet, Flux}, check)
}

// Excuse turns the failures of the checks that --skip-preflight names into warnings, which say so.
func Excuse(reports preflight.Reports, skipped []string) {
	for i := range reports {
		r := &reports[i]
		if r.Status == preflight.StatusFail && MayBeSkipped(r.Name) && slices.Contains(skipped, r.Name) {
			r.Status, r.Summary = preflight.StatusWarn, r.Summary+" (skipped as asked)"
		}
	}
}

// checks are the checks of a session. The checks that ask the management cluster share one connection, and one answer
// to the question whose it is.
type checks struct {
	session *session.Session
	// goesOn says that the run continues a hand-over or a restore.
	goesOn bool
	// doctor says that doctor makes the checks, and not init.
	doctor    bool
	engine    *preflight.Engine
	found     session.Lookup[*standing.Cluster]
	fleetTags session.Lookup[[]fleetrepo.FleetTag]
	elsewhere session.Lookup[string]
}

// standing is standing.Find, called once for all checks.
func (c *checks) standing(ctx context.Context) (*standing.Cluster, error) {
	return c.found.Once(func() (*standing.Cluster, error) { return standing.Find(ctx, c.session) })
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
	if err := c.refuse(ctx); err != nil {
		return preflight.FailWith(err)
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
	if err := c.refuseAt(ctx, there.Client); err != nil {
		return unanswered(c.session, err)
	}
	if there.Claim == nil {
		return preflight.OK("the cluster belongs to no fleet yet")
	}
	return preflight.OK("the cluster is this fleet's")
}

// refuse looks whether another machine has made the management cluster. init has asked by then what needs no remote. Both ask the remote
// here, beside the other checks that do, so that one which does not answer is waited for once.
func (c *checks) refuse(ctx context.Context) error {
	if c.goesOn || c.clonedElsewhere() != "" { // the remote and the place of the snapshots get a token
		return nil
	}
	if c.doctor {
		if err := standing.Refuse(ctx, c.session); err != nil {
			return err
		}
	}
	return standing.RefusePublished(ctx, c.session)
}

// refuseAt looks whether init may go on with a cluster that is there.
func (c *checks) refuseAt(ctx context.Context, client *kube.Client) error {
	if c.doctor && c.clonedElsewhere() == "" {
		return standing.RefuseAt(ctx, c.session, client)
	}
	if c.goesOn {
		return nil
	}
	_, err := standing.RefuseHandedOver(ctx, c.session, client)
	return err
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
		return preflight.Fail(ownership.ChooseNameHint, "the management cluster %s is another fleet's (%.8s), and does not run",
			s.Mgmt.Name, id)
	case id != s.Identity():
		return preflight.Fail("start it first (`fleetctl host start`): then it can be asked; or "+ownership.ChooseNameHint,
			"the management cluster %s does not run, and nothing says that it is this fleet's", s.Mgmt.Name)
	}
	return preflight.OK("the cluster is this fleet's, and does not run")
}

// unanswered is the result if an API server that should answer does not. A record on this machine is enough until the
// API server answers: before init installs anything, it asks again.
func unanswered(s *session.Session, err error) preflight.Result {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return preflight.Skip("the user may not read the cluster, so init would refuse: see name")
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
	found, err := following.Find(ctx, c.session, there.Client, there.Claim, following.View{})
	if err != nil {
		return unanswered(c.session, err)
	}
	if err := found.Check(ctx); err != nil {
		return unanswered(c.session, err)
	}
	now, err := found.Look(ctx)
	switch {
	case err != nil:
		return unanswered(c.session, err)
	case now != nil: // --take-over-flux
		return preflight.Warn("", "it follows %s, and init takes it over: %s that it applied and this repo lacks %s kept",
			now.Follows, plain.Count(len(now.WouldDelete), "object"), plain.Are(len(now.WouldDelete)))
	}
	notes, err := found.Notes(ctx)
	if err != nil {
		return unanswered(c.session, err)
	}
	return judgeNotes(notes)
}

// judgeNotes names what may keep a Flux from following this fleet repo.
func judgeNotes(notes []following.Note) preflight.Result {
	var texts, hints []string
	for _, n := range notes {
		texts, hints = append(texts, n.Text), append(hints, n.Hint)
	}
	if len(texts) > 0 {
		return preflight.Warn(strings.Join(hints, "; "), "it may follow this fleet repo; but %s", strings.Join(texts, "; and "))
	}
	return preflight.OK("it may follow this fleet repo")
}
