// Package masters makes a management cluster that stands alone, with the help of a temporary parent. The parent makes the cluster for the
// new management cluster. The new management cluster gets its own providers and Flux, and takes over its own Cluster and the clusters of
// its environment. Then it needs no parent, and the parent can be torn down.
//
// Each part is a separate workflow that converges: bootstrap of the parent, init, a transfer of each cluster, connect, teardown. So you can
// run an interrupted run again.
package masters

import (
	"context"
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownrepo"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/transfer"
)

// Options of Bootstrap.
type Options struct {
	lifecycle.BootstrapOptions
	// Master is the management cluster to make.
	Master *fleetrepo.Master
	// Change says how the fleet repo records the hand-over. Only its PullRequest, Forge, NoVerify and CacheDir are used. Without
	// PullRequest the change is pushed.
	Change change.Options
	// Own tells how to reach the new management cluster's own fleet repo, if Master has one.
	Own OwnOptions
	// KeepParent keeps the parent, even if the parent has no clusters left.
	KeepParent bool
}

// OwnOptions are the options for the new management cluster's own fleet repo. Credentials of the parent's repo are never tried there.
type OwnOptions struct {
	// Dir gets a clone of the repo. Default: a folder in the state folder.
	Dir string
	// Git has the credentials to push to the repo. Flux on the new management cluster reads the repo with FluxToken, or with the token of
	// Git if FluxToken is empty.
	Git       change.Credentials
	FluxToken string
	// Create makes the repository, private and empty, if it does not exist. The token of Git needs the right to make repositories.
	Create bool
}

// Result is what Bootstrap did. Outcome is ready, not-ready or failed, and the exit code says the same.
type Result struct {
	FormatVersion string `json:"formatVersion"`
	Outcome       string `json:"outcome"`
	Error         string `json:"error,omitempty"`
	Cluster       string `json:"cluster"`
	Parent        string `json:"parent"`
	// HandedOver are the clusters that the new management cluster has taken over in this run, as environment/name.
	HandedOver []string `json:"handedOver"`
	// Repo is the folder of the new management cluster's own fleet repo, if it has one.
	Repo string `json:"repo,omitempty"`
	// Changes are the changes of the fleet repo, and of the new management cluster's own fleet repo.
	Changes []*change.Result `json:"changes"`
	// Alone says that the new management cluster works without its parent. Bootstrap has proved it.
	Alone bool `json:"alone"`
	// ParentGone tells that this run has torn the parent down. ParentKeeps are the Clusters that prevented this. ParentLeft are the remains of
	// the parent.
	ParentGone  bool     `json:"parentGone"`
	ParentKeeps []string `json:"parentKeeps"`
	ParentLeft  []string `json:"parentLeft,omitempty"`
	Kubeconfig  string   `json:"kubeconfig,omitempty"`
	// SupportBundle of a failed run is of the parent, and ClusterSupportBundle of the new management cluster.
	SupportBundle        string           `json:"supportBundle,omitempty"`
	ClusterSupportBundle string           `json:"clusterSupportBundle,omitempty"`
	Next                 []string         `json:"next"`
	Steps                []progress.Event `json:"steps"`
}

// master is one run.
type master struct {
	management.Deps
	opts   Options
	result *Result
	// permanent says that no pipeline on this machine has made the parent, so the parent stays.
	permanent bool
	// known says that this run knows which clusters were handed over so far, because the parent or the new management cluster answers.
	// silent is the reason why a parent with a record does not answer.
	known  bool
	silent error
	// works says that the run has begun to work, and waits that it waits for the merge of a pull request.
	works, waits bool
	// own is the new management cluster's own fleet repo. It is nil if the new management cluster shares the parent's repo.
	own *ownrepo.Repo
	// taken are the clusters that the new management cluster has taken over in this run.
	taken []fleetrepo.ClusterName
}

// Bootstrap makes a management cluster that stands alone. It makes the parent if there is none, and tears the parent down if no other
// clusters need it. It returns a result also with an error.
func Bootstrap(ctx context.Context, deps management.Deps, o Options) (*Result, error) {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	o.Timeout = 0 // it is that of the whole
	m := &master{Deps: deps, opts: o, result: &Result{
		FormatVersion: "1", Outcome: "failed", Cluster: o.Master.Name, Parent: o.Master.Parent,
		HandedOver: []string{}, Changes: []*change.Result{}, ParentKeeps: []string{}, Next: []string{},
	}}
	err := m.withSupport(ctx, m.run(ctx))
	switch diag.Code(err) {
	case diag.ExitOK:
		m.result.Outcome = "ready"
	case diag.ExitNotReady:
		m.result.Outcome = "not-ready"
	}
	if err != nil {
		m.result.Error = err.Error()
	}
	return m.result, err
}

func (m *master) run(ctx context.Context) error {
	if err := m.findParent(ctx); err != nil {
		return err
	}
	if err := m.refuseWaiting(); err != nil {
		return err
	}
	if err := m.openOwn(ctx); err != nil {
		return err
	}
	under, takes := false, len(m.opts.Master.Clusters) > 0
	if takes {
		var err error
		if under, err = m.underWay(ctx); err != nil {
			return err
		}
		if !under {
			if err := m.refuseBegun(); err != nil {
				return err
			}
		}
	}
	m.works = true
	if takes {
		if err := m.takeOver(ctx, under); err != nil {
			return err
		}
	}
	if err := m.remember(ctx); err != nil {
		return err
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	// Prove it twice: first while the parent still exists and the work could go back to it, then without the parent.
	if err := m.prove(ctx, "works with what it has"); err != nil {
		return err
	}
	if err := m.endParent(ctx); err != nil {
		return err
	}
	if err := m.prove(ctx, "stands alone"); err != nil {
		return err
	}
	m.result.Alone = true
	m.tellStaying(ctx)
	m.result.Next = append(m.result.Next, "fleetctl status --management "+m.result.Cluster)
	return nil
}

// takeOver makes the new management cluster, unless an earlier run has begun the hand-over, and hands its clusters over to it.
func (m *master) takeOver(ctx context.Context, under bool) error {
	if !under {
		if err := m.checkOwn(ctx); err != nil {
			return err
		}
		if err := m.make(ctx); err != nil {
			m.works = diag.Code(err) != diag.ExitUsage // a mistake in the call
			return err
		}
	}
	if err := m.moveOut(ctx); err != nil {
		return err
	}
	if err := m.announce(ctx); err != nil {
		return err
	}
	for _, cluster := range m.opts.Master.Clusters {
		if err := m.handOver(ctx, cluster); err != nil {
			return err
		}
	}
	return nil
}

// join names clusters in a sentence.
func join(clusters []fleetrepo.ClusterName) string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}

// findParent finds the parent, before bootstrap writes its own record.
func (m *master) findParent(ctx context.Context) (err error) {
	m.permanent, err = isPermanent(ctx, m.Deps, m.opts.Dir, m.result.Parent, m.opts.Master.ParentHost)
	return err
}

// make brings the parent up, waits until the parent has made its clusters, and makes the chosen cluster a management cluster.
func (m *master) make(ctx context.Context) error {
	deps, o, err := m.ofCluster() // what it must not be made of is told before there is anything
	if err != nil {
		return err
	}
	parent := m.opts.BootstrapOptions
	parent.Cluster, parent.PivotTo, parent.MergeKubeconfig, parent.KubeconfigOut = m.result.Parent, "", "", ""
	parent.Ephemeral = !m.permanent
	made, err := lifecycle.Bootstrap(ctx, m.Deps, parent)
	if made != nil {
		m.result.SupportBundle = made.SupportBundle
	}
	if err != nil {
		return diag.Wrap("bring up "+m.result.Parent+", which makes "+m.result.Cluster, err, "")
	}
	_, err = lifecycle.Init(ctx, deps, o)
	return diag.Wrap("make a management cluster of "+m.result.Cluster, err, m.beginAnew(err))
}

// finish removes notes of earlier runs on the parent, after a pull request was merged or a run was interrupted. It does so for each cluster
// that the fleet repo has at the new management cluster.
func (m *master) finish(ctx context.Context) error {
	target, err := management.Find(m.Store, m.result.Parent, m.opts.Dir)
	if err != nil || target.Record == nil || len(m.opts.Master.Has) == 0 {
		return err
	}
	client, err := target.Client(ctx)
	if err != nil {
		if diag.Code(err) != diag.ExitNotReady { // one that is stopped, or gone, does nothing with it
			m.Report.Warn(fmt.Sprintf("%s is not reached; what its Flux was kept off stays there until this is run again: %v", m.result.Parent, err))
		}
		return nil
	}
	clusters, kubeconfigs := map[kube.Key]fleetrepo.ClusterName{}, []kube.Key{}
	for _, c := range m.opts.Master.Has {
		key := capi.KubeconfigSecret(kube.Key{Namespace: c.Name, Name: c.Name}) // a namespace of its name, as the layout has it
		clusters[key], kubeconfigs = c, append(kubeconfigs, key)
	}
	left, err := flux.NewSystem(client).LetGoLeft(ctx, kubeconfigs...)
	if err != nil {
		return err
	}
	for _, key := range left {
		if err := m.handOver(ctx, clusters[key]); err != nil {
			return err
		}
	}
	return nil
}

// ofCluster returns the options of init for the new management cluster. The options for a host concern only the parent's host. The sources
// of values come from the parent's fleet repo, even if the new management cluster has its own. ofCluster returns an error if that repo
// names other sources.
func (m *master) ofCluster() (management.Deps, session.Options, error) {
	o := m.opts.Options
	o.Cluster, o.Ephemeral, o.FormerIsGone = m.result.Cluster, false, m.opts.SourceIsGone
	o.HostType, o.Context, o.Kubeconfig, o.KubernetesVersion, o.NodeImage, o.Providers = "", "", "", "", "", nil
	if m.own == nil {
		return m.Deps, o, nil
	}
	o.Dir, o.Git, o.FluxToken, o.FluxUsername, o.AgeKeyFile = m.own.Dir, m.opts.Own.Git, m.opts.Own.FluxToken, "", ""
	o.RemoteFlags = nil // they were about the parent's fleet repo
	repo, err := fleetrepo.Open(m.opts.Dir)
	if err != nil {
		return m.Deps, o, err
	}
	declared, err := repo.Fleet.ManagementCluster(m.result.Cluster)
	if err != nil {
		return m.Deps, o, err
	}
	own, err := fleetrepo.Open(m.own.Dir)
	if err != nil {
		return m.Deps, o, err
	}
	o.Sources = &session.Sources{Dir: m.opts.Dir, Declared: declared}
	return session.Narrowed(m.Deps, declared), o, o.Sources.Check(own.Fleet)
}

// handOver transfers a cluster from the parent to the new management cluster, and records the transfer in the fleet repo.
func (m *master) handOver(ctx context.Context, name fleetrepo.ClusterName) error {
	cluster := name.String()
	o := m.opts.Change
	o.Dir, o.Git, o.Push = m.opts.Dir, m.opts.Git, !o.PullRequest
	to := transfer.Options{Cluster: cluster, To: m.result.Cluster, Change: o}
	if m.own != nil {
		to.Into = &transfer.Into{Dir: m.own.Dir, Git: m.opts.Own.Git, From: m.result.Parent, Reseal: m.own.Reseal}
	}
	done, err := transfer.Run(ctx, m.Deps, to)
	if done != nil {
		m.changed(done.Arrival, done.Change)
	}
	if err != nil {
		return diag.Wrap("hand cluster "+cluster+" over to "+m.result.Cluster, err, "")
	}
	m.result.HandedOver = append(m.result.HandedOver, cluster)
	m.taken = append(m.taken, name)
	if done.Outcome == "transferred" {
		return nil
	}
	m.waits = true
	hint := "carry the change to where Flux reads it, and run the same command again"
	if c := done.Change; c != nil && c.PullRequest != nil {
		hint = "merge " + c.PullRequest.URL + ", `git pull`, and run the same command again"
	}
	return diag.NotReady(hint, "%s has cluster %s, and the fleet repo does not say so yet", m.result.Cluster, cluster)
}

// endParent tears the parent down if a pipeline made it here and if it has no Cluster left.
func (m *master) endParent(ctx context.Context) error {
	target, err := management.Find(m.Store, m.result.Parent, m.opts.Dir)
	if err != nil {
		return err
	}
	if target.Record == nil { // this machine does not know it: an earlier run has torn it down, or another machine has it
		return m.noteEndedBefore(ctx)
	}
	if m.opts.KeepParent || m.permanent {
		m.result.Next = append(m.result.Next, "fleetctl teardown --management "+m.result.Parent+"    # once it has nothing left to make")
		return nil
	}
	uid := ""
	client, err := target.Client(ctx)
	if err == nil {
		left, err := management.Clusters(ctx, client)
		if err != nil {
			return diag.Wrap("list the workload clusters that are left on "+m.result.Parent, err, "")
		}
		if m.result.ParentKeeps = append(m.result.ParentKeeps, management.FullNames(left)...); len(left) > 0 {
			m.result.Next = append(m.result.Next, fmt.Sprintf(
				"fleetctl bootstrap --management NAME --stand-alone    # for each management cluster that %s has still made; it is kept until then",
				m.result.Parent))
			return nil
		}
		if uid, err = handover.ClusterUID(ctx, client); err != nil {
			return diag.Wrap("read the identity of "+m.result.Parent, err, "")
		}
	}
	// teardown reports a cluster that does not answer. It starts a stopped host, and looks for itself.
	ended, err := lifecycle.Teardown(ctx, m.Deps, lifecycle.TeardownOptions{Target: target})
	if err != nil {
		return diag.Wrap("tear down "+m.result.Parent, err, "")
	}
	m.result.ParentLeft = ended.Leftovers
	m.result.ParentGone = ended.Changed && len(ended.Leftovers) == 0
	if err := m.forgetSnapshots(ctx, uid); err != nil {
		return err
	}
	if m.result.ParentGone {
		m.noteEnded(ctx, uid)
	}
	return nil
}

// forgetSnapshots removes the snapshots of the parent, which is gone. A later parent begins from Git, and would refuse to start beside
// snapshots.
func (m *master) forgetSnapshots(ctx context.Context, uid string) error {
	if uid == "" || !m.result.ParentGone {
		return nil
	}
	kept, err := pivot.ForgetSnapshots(ctx, m.Deps, session.Options{
		Dir: m.opts.Dir, Cluster: m.result.Parent, Git: m.opts.Git,
		AgeKeyFile: m.opts.AgeKeyFile,
	}, uid)
	if err != nil {
		return diag.Wrap("forget the snapshots of "+m.result.Parent, err, "")
	}
	if kept > 0 {
		m.Report.Warn("kept " + plain.Count(kept, "snapshot") + ", not readable here or not of " + m.result.Parent)
	}
	return nil
}
