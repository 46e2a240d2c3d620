package masters

import (
	"context"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// refuseWaiting refuses to start another run while a pull request is open that only this machine knows. Another run would make the clusters
// a second time.
func (m *master) refuseWaiting() error {
	if !m.opts.Change.PullRequest || m.permanent || m.opts.Master.Snapshots || len(m.opts.Master.Clusters) == 0 {
		return nil
	}
	return diag.Usage("declare spec.snapshots.to in fleet.yaml, which a new machine asks first; or leave --pr out",
		"until the pull request is merged, only this machine would know that %s has taken %s over", m.result.Cluster,
		join(m.opts.Master.Clusters))
}

// underWay tells whether an earlier run has begun to hand clusters over to the new management cluster. Then this run makes nothing, and
// only the transfer itself touches existing objects. underWay also asks the new management cluster, which may have taken over from a parent
// that is gone.
func (m *master) underWay(ctx context.Context) (bool, error) {
	for _, name := range []string{m.result.Parent, m.result.Cluster} {
		target, err := management.Find(m.Store, name, m.dirOf(name))
		if err != nil {
			return false, err
		}
		if target.Record == nil {
			continue
		}
		client, err := target.Client(ctx)
		if err != nil {
			if name == m.result.Parent {
				m.silent = err // nothing that it has handed over is known by its record alone
			}
			continue // what is not there has nothing under way; what does not answer is told by the steps that need it
		}
		journal, err := handover.ReadJournal(ctx, client)
		if err != nil {
			return false, err
		}
		if m.known, err = m.tells(ctx, name, client, journal); err != nil {
			return false, err
		}
		if journal == nil || journal.Whole() || journal.Detach || journal.Source.Name != m.result.Parent ||
			journal.Target.Name != m.result.Cluster {
			continue
		}
		if journal.Active() {
			return true, nil
		}
		if name == m.result.Parent {
			continue // what it has handed over is told by who has it
		}
		there, err := management.Clusters(ctx, client)
		if err != nil {
			return false, err
		}
		for _, c := range there { // it has changed hands, and the fleet repo does not say so yet
			if journal.IsTransferOf(c.FullName()) && m.wants(c.Name) {
				return true, nil
			}
		}
	}
	return false, nil
}

// tells whether the management cluster called name, which client reaches, knows which Clusters were handed over. The new management cluster
// knows it from its own Clusters. A parent with none of the begun Clusters, and with no journal of their transfer, may be another
// management cluster of the same name, which a later run made.
func (m *master) tells(ctx context.Context, name string, client *kube.Client, journal *handover.Journal) (bool, error) {
	begun := m.opts.Master.Begun
	if m.known || name == m.result.Cluster || len(begun) == 0 {
		return true, nil
	}
	there, err := management.Clusters(ctx, client)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(begun, func(c fleetrepo.ClusterName) bool {
		return journal != nil && journal.Target.Name == m.result.Cluster && journal.IsTransferOf(c.Name) ||
			slices.ContainsFunc(there, func(has capi.Cluster) bool { return has.Name == c.Name })
	}), nil
}

// wants tells whether the fleet repo still declares a cluster at the parent that the new management cluster is to get.
func (m *master) wants(name string) bool {
	return slices.ContainsFunc(m.opts.Master.Clusters, func(c fleetrepo.ClusterName) bool { return c.Name == name })
}

// refuseBegun refuses to make clusters that an earlier run may have handed over already. It does so if the fleet repo says that a hand-over
// has begun, and if on this machine neither the new management cluster answers, nor the parent with the Clusters or a journal of them. Git
// learns of a hand-over only after it has happened.
func (m *master) refuseBegun() error {
	begun := m.opts.Master.Begun
	if len(begun) == 0 || m.known || m.opts.SourceIsGone {
		return nil
	}
	name, parent, connect := m.result.Cluster, m.result.Parent, "fleetctl connect --management "+m.result.Cluster+" --kubeconfig FILE"
	if m.own != nil {
		connect += " --repo " + m.own.Dir
	}
	if m.silent != nil {
		return diag.Errorf("`fleetctl host start --management "+parent+
			"` if it is stopped, and run the same command again; or go on where that run was; or `"+connect+"` if "+name+
			" is there; if it is gone with all its machines: --source-is-gone",
			"a run has begun to hand %s over to %s (%s) and has not ended: the fleet repo says so, and this machine has a record of %s, which "+
				"does not answer (%w), and knows nothing of %s: "+
				"%s may be there already, and would be made a second time", join(begun), name, m.opts.Master.ByWhom, parent, m.silent, name, name)
	}
	return diag.Errorf("go on where that run was; or `"+connect+"` if "+name+
		" is there; if it is gone with all its machines: --source-is-gone",
		"a run has begun to hand %s over to %s (%s) and has not ended: the fleet repo says so, and this machine knows neither the %s that did "+
			"nor %s: %s may be there already, and would be made a second time",
		join(begun), name, m.opts.Master.ByWhom, parent, name, name)
}

// thisRun returns the note in the fleet repo about this run.
func thisRun() *fleetrepo.HandedOver {
	return &fleetrepo.HandedOver{At: time.Now(), By: ownership.Somebody(), Version: version.Get().Version}
}

// announce notes in the fleet repo which clusters the run will hand over, before it hands over the first. A pull request would be too late,
// and refuseWaiting takes care of that case.
func (m *master) announce(ctx context.Context) error {
	if m.opts.Change.PullRequest {
		return nil
	}
	run := thisRun()
	_, err := m.carry(ctx, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.BeginHandOver(m.opts.Master, run) })
	return diag.Wrap("say in the fleet repo what "+m.result.Cluster+" is about to take over", err,
		"nothing has changed hands; run the same command again")
}
