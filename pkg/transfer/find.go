package transfer

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// find reads from the fleet repo where the cluster is declared, and sets the two management clusters of the transfer.
func (t *transfer) find(ctx context.Context) error {
	repo, err := fleetrepo.Open(t.opts.Change.Dir)
	if err != nil {
		return err
	}
	if t.opts.Into != nil {
		return t.findInto(repo)
	}
	at, err := declaredAt(repo, t.opts.Cluster)
	if err != nil {
		return err
	}
	t.name, t.local = at[0].Name, repo.Fleet.Spec.Git.Scheme() == v1alpha1.GitLocal
	from, to := at[0].ManagementCluster, t.opts.To
	if len(at) == 2 && at[0].ManagementCluster == to { // somebody has copied the cluster's folder by hand
		from = at[1].ManagementCluster
	}
	if to == "" || from == to {
		if from, to, err = t.underWay(ctx, repo, at[0]); err != nil {
			return err
		}
	}
	t.result.From, t.result.To, t.result.Cluster = from, to, t.name
	if t.fluxOnly {
		return nil
	}
	t.declared = !slices.ContainsFunc(at, func(c fleetrepo.Cluster) bool { return c.ManagementCluster == from })
	for _, of := range []struct {
		name string
		side **side
	}{{from, &t.from}, {to, &t.to}} {
		m, err := repo.Fleet.ManagementCluster(of.name)
		if err != nil {
			return err
		}
		if m.Repository != nil {
			return diag.Usage("`fleetctl bootstrap --management "+m.Name+" --stand-alone` hands it the clusters of its environments",
				"management cluster %s has a fleet repo of its own, %s", m.Name, m.Repository.Git.URL)
		}
		target, err := management.Find(t.Store, of.name, t.opts.Change.Dir)
		if err != nil {
			return err
		}
		*of.side = &side{target: target}
	}
	return nil
}

// findInto is find for a target with its own fleet repo. It finds out which of the two repos has the cluster's folder. During the transfer
// both have it.
func (t *transfer) findInto(repo *fleetrepo.Repo) error {
	if t.opts.Change.PullRequest {
		return diag.Usage("leave out --pr", "%s has its own fleet repo, and a transfer pushes to both fleet repos", t.opts.To)
	}
	into, err := fleetrepo.Open(t.opts.Into.Dir)
	if err != nil {
		return err
	}
	there, err := into.Cluster(t.opts.Cluster)
	t.arrived = err == nil && there.ManagementCluster == t.opts.To
	here, err := repo.Cluster(t.opts.Cluster)
	t.declared = err != nil && t.arrived
	switch {
	case err != nil && !t.arrived:
		return err
	case err != nil:
		t.name = there.Name
	case here.ManagementCluster != t.opts.Into.From:
		return diag.Errorf("`fleetctl cluster list` shows its management cluster", "cluster %s belongs to %s, not to %s", t.opts.Cluster,
			here.ManagementCluster, t.opts.Into.From)
	default:
		t.name = here.Name
	}
	t.result.From, t.result.To, t.result.Cluster = t.opts.Into.From, t.opts.To, t.name
	from, err := management.Find(t.Store, t.opts.Into.From, t.opts.Change.Dir)
	if err != nil {
		return err
	}
	to, err := management.Find(t.Store, t.opts.To, t.opts.Into.Dir)
	if err != nil {
		return err
	}
	t.from, t.to = &side{target: from}, &side{target: to}
	return nil
}

// declaredAt returns the places in the fleet repo that declare the cluster: one, or two while somebody moves it by hand.
func declaredAt(repo *fleetrepo.Repo, given string) ([]fleetrepo.Cluster, error) {
	all, _, err := repo.Clusters()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c fleetrepo.Cluster) bool { return c.Name != given && c.Environment+"/"+c.Name != given })
	if len(all) == 0 || len(all) > 2 || len(all) == 2 && all[0].Environment != all[1].Environment {
		c, err := repo.Cluster(given) // its error lists the clusters that exist
		if err != nil {
			return nil, err
		}
		return []fleetrepo.Cluster{*c}, nil
	}
	return all, nil
}

// underWay finds the two sides of a transfer that an earlier run has begun. It reads the journal of the management cluster that the fleet
// repo names. If that journal is of a later hand-over, underWay looks for a management cluster that still has objects of the cluster.
func (t *transfer) underWay(ctx context.Context, repo *fleetrepo.Repo, declared fleetrepo.Cluster) (from, to string, err error) {
	at := declared.ManagementCluster
	client, err := t.clientOf(ctx, at)
	if err != nil {
		return "", "", err
	}
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return "", "", err
	}
	cluster, err := t.clusterAt(ctx, client)
	if err != nil {
		return "", "", err
	}
	there := cluster != nil
	if journal != nil && journal.IsTransferOf(t.name) && (journal.Active() || journal.Target.Name == at || !there) {
		return t.direction(journal)
	}
	if !there || t.opts.To == at {
		if left, err := t.leftAt(ctx, repo, at); left != "" || err != nil {
			return left, at, err
		}
	}
	if t.opts.Abort { // a run was interrupted before it wrote a journal, or an abort after it had removed the journal
		t.fluxOnly, t.from = true, &side{client: client}
		return at, at, nil
	}
	if t.opts.To == at {
		return "", "", diag.Errorf("`fleetctl cluster list` shows what the fleet repo declares",
			"cluster %s already belongs to %s, and no transfer of it is under way", t.name, at)
	}
	others := slices.DeleteFunc(repo.ManagementClusterNames(), func(name string) bool { return name == at })
	hint := "first declare another management cluster: `fleetctl management add`"
	if len(others) > 0 {
		hint = "give --to, one of: " + strings.Join(others, ", ")
	}
	return "", "", diag.Usage(hint, "no transfer of cluster %s is under way, and the command names no target", t.name)
}

// direction returns the sides of the transfer in a journal, or those of a requested transfer back. It returns an error if the user asks for
// another target while the transfer is under way.
func (t *transfer) direction(j *handover.Journal) (from, to string, err error) {
	switch {
	case t.opts.To == "" || t.opts.To == j.Target.Name:
		return j.Source.Name, j.Target.Name, nil
	case t.opts.To == j.Source.Name && j.Phase == handover.PhaseReleased:
		return j.Target.Name, j.Source.Name, nil
	}
	return "", "", t.toAnother(j)
}

// toAnother is the error about a target other than that of the transfer that is under way.
func (t *transfer) toAnother(j *handover.Journal) error {
	return diag.Errorf("first finish that transfer: `"+j.Command()+"`",
		"cluster %s is in the middle of a transfer from %s to %s", t.name, j.Source.Name, j.Target.Name)
}

// clientOf connects to a management cluster of the fleet.
func (t *transfer) clientOf(ctx context.Context, name string) (*kube.Client, error) {
	target, err := management.Find(t.Store, name, t.opts.Change.Dir)
	if err != nil {
		return nil, err
	}
	return target.Client(ctx)
}

// leftAt returns a management cluster, other than at, whose Flux a transfer has told to leave the cluster alone and which still has objects
// of the cluster. It returns "" if this machine knows no such management cluster, or if none answers.
func (t *transfer) leftAt(ctx context.Context, repo *fleetrepo.Repo, at string) (string, error) {
	for _, name := range repo.ManagementClusterNames() {
		if name == at {
			continue
		}
		client, err := t.clientOf(ctx, name)
		if err != nil {
			continue // a management cluster that does not answer is skipped
		}
		left, err := flux.NewSystem(client).LetGoLeft(ctx, capi.KubeconfigSecret(t.declaredKey()))
		if err != nil {
			return "", err
		}
		if len(left) > 0 {
			return name, nil
		}
	}
	return "", nil
}

// clusterAt returns the Cluster of that name at a management cluster, or nil if there is none. A Cluster that somebody has adopted may be
// in any namespace, but the one in the namespace of the layout comes first.
func (t *transfer) clusterAt(ctx context.Context, client *kube.Client) (*capi.Cluster, error) {
	clusters, err := management.Clusters(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, is := range []func(capi.Cluster) bool{
		func(c capi.Cluster) bool { return c.Key() == t.declaredKey() },
		func(c capi.Cluster) bool { return c.Name == t.name },
	} {
		if i := slices.IndexFunc(clusters, is); i >= 0 {
			return &clusters[i], nil
		}
	}
	return nil, nil //nolint:nilnil // no such Cluster is no error
}
