// Package standing looks at the management cluster that is there, before anything is done to it. It refuses a cluster that is another
// fleet's, that has handed its work over, or that another machine has made.
package standing

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Cluster is a management cluster that is there already: whose it is, and a way to ask it for more.
type Cluster struct {
	Client *kube.Client
	Claim  *ownership.Claim
}

// Find looks at the management cluster; nil where there is none that runs.
func Find(ctx context.Context, s *session.Session) (*Cluster, error) {
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
	return &Cluster{Client: client, Claim: there}, nil
}

// ForDryRun is Find for a dry run, which needs no host, and no cluster that answers: without them it is nil.
func ForDryRun(ctx context.Context, s *session.Session) (*Cluster, error) {
	if s.HostErr != nil {
		return nil, nil //nolint:nilerr // what a dry run can do without
	}
	there, err := Find(ctx, s)
	if kube.IsUnreachable(err) {
		return nil, nil
	}
	return there, err
}

// PlanFollowing is what a dry run says of the Flux that is there, where it follows something else, and what else there is to know of it.
// Both are nil where there is nothing to say.
func PlanFollowing(ctx context.Context, s *session.Session, have following.View) (*following.Now, []following.Note, error) {
	there, err := ForDryRun(ctx, s)
	if there == nil || err != nil {
		return nil, nil, err
	}
	if err := s.CheckClaim(there.Claim); err != nil {
		return nil, nil, err
	}
	found, err := following.Find(ctx, s, there.Client, there.Claim, have)
	if err != nil {
		return nil, nil, diag.Wrap("look at what Flux follows", err, "")
	}
	now, err := found.Look(ctx)
	if err != nil {
		return nil, nil, diag.Wrap("look at what Flux follows", err, "")
	}
	notes, err := found.Notes(ctx)
	return now, notes, diag.Wrap("look at what keeps Flux from its work", err, "")
}
