// Package standing looks at an existing management cluster before anything is done to it. It refuses a cluster that
// belongs to another fleet, that has handed its work over, or that another machine has made.
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

// Cluster is an existing management cluster: its owner, and a client to ask it for more.
type Cluster struct {
	Client *kube.Client
	Claim  *ownership.Claim
}

// Find looks at the management cluster. It returns nil if none runs.
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

// ForDryRun is Find for a dry run, which needs neither a host nor a cluster that answers. Without them it returns nil.
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

// PlanFollowing returns what a dry run says of an existing Flux that follows something else, and what else is notable
// about it. Both are nil if there is nothing to say.
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
