package management

import (
	"context"
	"errors"
	"os"

	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// StatusSources finds what a status report of the target is collected from. What cannot be found is said in the report.
func StatusSources(ctx context.Context, t *Target) status.Sources {
	from := status.Sources{Cluster: status.Cluster{Name: t.Name, State: "absent"}}
	if r := t.Record; r != nil {
		from.Repo = r.Repo
		from.Cluster.Fleet, from.Cluster.Host = r.Fleet, r.HostType
		from.Cluster.PivotedTo, from.Cluster.Ephemeral = r.PivotedTo, r.Ephemeral
		from.FleetID = r.FleetID
	}
	if t.repo != nil && from.FleetID == "" {
		from.FleetID = t.repo.ID
	}
	if t.given != nil && t.repo != nil {
		from.Repo, from.Cluster.Fleet, from.Cluster.Host = t.repo.Dir, t.repo.Name, string(t.repo.Hosts[t.Name])
	}
	dir := t.Cluster.Path(GitServeDir)
	if _, err := os.Stat(dir); err == nil && t.given == nil {
		from.Served = func(ctx context.Context) (bool, error) {
			st, err := gitserve.Status(ctx, dir)
			if err != nil {
				return false, err
			}
			return st.Healthy, nil
		}
	}
	kubeconfig, err := t.Kubeconfig(ctx)
	if err == nil {
		from.Cluster.State = "running"
		if from.Client, err = kube.New(kubeconfig, kube.Options{}); err == nil {
			switch other := t.checkWhose(ctx, from.Client); { // what else is wrong, the report says
			case errors.Is(other, ownership.ErrOtherFleet):
				from.Client, err = nil, other
			case errors.Is(other, ownership.ErrNoClaim):
				from.Claim = other
			case from.FleetID == "": // the cluster itself knows it
				if claim, err := ownership.ReadClaim(ctx, from.Client); err == nil && claim != nil {
					from.FleetID = claim.Fleet
				}
			}
		}
		from.Trouble = t.trouble(ctx)
	} else {
		from.Cluster.State = t.state(ctx)
	}
	from.Unreachable = err
	return from
}

// trouble is what the host that carries the target says of itself; after a pivot that is not ours to ask.
func (t *Target) trouble(ctx context.Context) error {
	if t.Pivoted() {
		return nil
	}
	h, err := t.Host(ctx)
	if err != nil {
		return nil //nolint:nilerr // the cluster answers for itself
	}
	return troubleOf(h)
}

// state is the host's state in a word, for a report that says that it cannot be reached.
func (t *Target) state(ctx context.Context) string {
	h, err := t.Host(ctx)
	if err != nil {
		return "unknown"
	}
	st, err := h.State(ctx)
	if err != nil {
		return "unknown"
	}
	return string(st)
}
