package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Sources are the sources of a report. A nil Client means that the management cluster cannot be reached; Unreachable then has the reason.
type Sources struct {
	Cluster     Cluster
	Client      *kube.Client
	Unreachable error
	// FleetID is the identity of the management cluster's fleet; empty if it is not known.
	FleetID string
	// Claim, if not nil, says why nobody can tell from the management cluster which fleet it belongs to.
	Claim error
	// Trouble is the result of host.Complainer, which explains why an API server does not answer; nil if the host found nothing.
	Trouble error
	// Repo is the folder of the fleet repo; empty if it is not known.
	Repo string
	// Place, if not nil, tells whether another cluster has the place of the management cluster in its fleet. It returns nil if none has.
	Place func(ctx context.Context, client *kube.Client) (*Problem, error)
	// Served, if not nil, tells whether the fleet repo without a remote is being served.
	Served func(ctx context.Context) (bool, error)
	// Answers, if not nil, keeps what the workload clusters say of their owners between the reports of a watch.
	Answers *Answers
}

// Collect reads all sources in parallel.
func Collect(ctx context.Context, from Sources) *Report {
	c := &collector{from: from, report: newReport(from.Cluster)}
	if from.Claim != nil {
		c.missing(partClaim, from.Claim)
	}
	parts := []func(context.Context){c.git}
	if from.Client == nil {
		c.report.Unknown = append(c.report.Unknown, partFlux, partProviders, partClusters)
	} else {
		parts = append(parts, c.version, c.providers, c.flux, c.clusters, c.handOver, c.place)
	}
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() { part(ctx) })
	}
	all.Wait()
	c.judge()
	return c.report
}

// newReport is a report in which nothing is wrong.
func newReport(of Cluster) *Report {
	return &Report{
		FormatVersion: "1", Time: time.Now().UTC().Truncate(time.Second), Ready: true, Cluster: of,
		Providers: []Item{}, Flux: Flux{Controllers: []Item{}, Sources: []Object{}, Applied: []Object{}}, Clusters: []Fleet{},
		Unknown: []string{}, Problems: []Problem{},
	}
}

type collector struct {
	from   Sources
	mu     sync.Mutex
	report *Report
	failed []Problem
	// replaced is not nil if another cluster has the place of the management cluster.
	replaced *Problem
	// underWay is what to say of a hand-over that is not finished; nil if there is none.
	underWay error
	// journal is that of the hand-over that is not finished; nil if there is none.
	journal *handover.Journal
	// last is the journal of the last hand-over, finished or not; nil if there was none.
	last *handover.Journal
	// uid of the management cluster's kube-system; empty if it is not known.
	uid string
}

// missing records a source that could not be read.
func (c *collector) missing(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, Problem{Object: what, Reason: reason(err), Hint: diag.Hint(err)})
}

// reason is the text of an error without the local port of a broken connection, which differs each time.
func reason(err error) string {
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Source != nil && op.Addr != nil {
		text = strings.Replace(text, op.Source.String()+"->", "", 1)
	}
	return text
}

// inOrder sorts the sources that could not be read into the order of the tree.
func inOrder(failed []Problem) []Problem {
	order := []string{
		repoServer, "fleet repo ", apiServer, partClaim, partProviders, partFlux, partClusters, partJournal, partStandby, partPlace,
	}
	place := func(p Problem) int {
		return slices.IndexFunc(order, func(name string) bool { return strings.HasPrefix(p.Object, name) })
	}
	slices.SortStableFunc(failed, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Object, b.Object))
	})
	return failed
}

// unknown records a part of the report that could not be read.
func (c *collector) unknown(part string, err error) {
	c.missing(part, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Unknown = append(c.report.Unknown, part)
}

func (c *collector) git(ctx context.Context) {
	g := &c.report.Git
	if c.from.Repo != "" {
		g.Repo = c.from.Repo
		repo, err := gitrepo.Open(c.from.Repo)
		if err == nil {
			g.Revision, err = repo.Head()
		}
		if err == nil {
			g.Branch, err = repo.Branch()
		}
		if err != nil {
			c.missing("fleet repo "+c.from.Repo, err)
		}
	}
	if c.from.Served == nil {
		return
	}
	served, err := c.from.Served(ctx)
	if err != nil {
		c.missing(repoServer, err)
		return
	}
	g.Served = &served
}

func (c *collector) version(ctx context.Context) {
	v, err := c.from.Client.ServerVersion(ctx)
	if err != nil {
		c.missing(apiServer, err)
		return
	}
	c.report.Cluster.Kubernetes = v
}

// place looks whether another cluster has the place of the management cluster, which then is an old copy that came back.
func (c *collector) place(ctx context.Context) {
	if c.from.Place == nil {
		return
	}
	var err error
	if c.replaced, err = c.from.Place(ctx, c.from.Client); err != nil {
		c.missing(partPlace, err)
	}
}

func (c *collector) providers(ctx context.Context) {
	manager, err := capi.New(c.from.Client)
	if err != nil {
		c.unknown(partProviders, err)
		return
	}
	installed, err := manager.Installed(ctx)
	if err != nil {
		c.unknown(partProviders, err)
		return
	}
	for _, p := range installed {
		c.report.Providers = append(c.report.Providers, Item{
			Name: p.Name, Type: string(p.Type), Namespace: p.Namespace, Version: p.Version, Ready: p.Ready, Reason: p.Reason,
			deployment: p.NotReady,
		})
	}
	c.credentials(ctx, manager)
}

func (c *collector) flux(ctx context.Context) {
	f, err := flux.NewSystem(c.from.Client).Status(ctx)
	if err != nil {
		c.unknown(partFlux, err)
		return
	}
	c.report.Flux.Installed = f.Installed
	c.report.Flux.Version = f.Version
	for _, d := range f.Controllers {
		c.report.Flux.Controllers = append(c.report.Flux.Controllers,
			Item{Name: d.Name, Namespace: flux.Namespace, Version: d.Image, Ready: d.Ready, Reason: d.Reason, deployment: d.Name})
	}
	holding := map[kube.Key]bool{}
	for _, k := range f.Kustomizations {
		holding[kube.Key{Namespace: k.Namespace, Name: k.Name}] = k.Suspended || k.Pauses
	}
	add := func(to *[]Object, all []flux.Object) {
		for _, s := range all {
			if !holding[s.PausedWith] { // that one was resumed without it
				s.PausedWith = kube.Key{}
			}
			*to = append(*to, object(s))
		}
	}
	add(&c.report.Flux.Sources, f.Sources)
	add(&c.report.Flux.Applied, append(f.Kustomizations, f.HelmReleases...))
}

func object(s flux.Object) Object {
	return Object{
		Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Revision: s.Revision, Ready: s.Ready, Suspended: s.Suspended,
		SuspendedInGit: s.SuspendedInGit, Reason: s.Reason,
		workload: s.Workload, byFleetctl: s.SuspendedByFleetctl, letGo: s.LetGo, behind: s.Behind,
		pauses: s.Pauses, pausedWith: s.PausedWith,
	}
}

func (c *collector) clusters(ctx context.Context) {
	manager, err := capi.New(c.from.Client)
	if err != nil {
		c.unknown(partClusters, err)
		return
	}
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		c.unknown(partClusters, err)
		return
	}
	for _, cl := range clusters {
		w := workload(cl)
		if w.Owner == "" {
			w.Owner = c.report.Cluster.Name
		}
		c.report.Clusters = append(c.report.Clusters, w)
	}
	if len(clusters) == 0 {
		return
	}
	system := &corev1.Namespace{}
	if err := c.from.Client.Get(ctx, kube.Key{Name: "kube-system"}, system); err != nil {
		if slices.ContainsFunc(clusters, func(cl capi.Cluster) bool { return cl.Owner.UID != "" }) {
			c.missing("owners of the workload clusters", err)
		}
	} else {
		c.uid = string(system.UID)
	}
	for i := range c.report.Clusters {
		c.report.Clusters[i].claim(c.uid)
	}
	c.ownRecords(ctx, manager, clusters)
}

// claim compares the owner in the record of a hand-over with the management cluster that was asked, whose kube-system has this UID. A
// paused cluster has no second owner: it is a copy in the midst of a hand-over.
func (f *Fleet) claim(uid string) {
	f.Elsewhere = f.record.IsAnother(uid)
	f.TwoOwners = f.Elsewhere && !f.Paused
}

// TwoOwnersText is what is wrong with a cluster that owner has taken over and that the management cluster that was asked acts on, too.
func TwoOwnersText(owner capi.Owner) string {
	return fmt.Sprintf("TWO OWNERS: management cluster %s has taken it over (hand-over %d), but this one acts on it, too",
		owner.ManagementCluster, owner.Epoch)
}

func workload(c capi.Cluster) Fleet {
	f := Fleet{
		Namespace: c.Namespace, Name: c.Name, Phase: c.Phase, Version: c.Version, Available: c.Available, Reason: c.Reason,
		Paused: c.Paused, Deleting: c.Deleting, Owner: c.Owner.ManagementCluster, Endpoint: c.Endpoint, record: c.Owner,
		damaged:      c.OwnerDamaged,
		ControlPlane: Replicas{Desired: c.ControlPlaneReplicas.Desired, Ready: c.ControlPlaneReplicas.Ready},
		Workers:      Replicas{Desired: c.WorkerReplicas.Desired, Ready: c.WorkerReplicas.Ready},
		Conditions:   []Condition{}, Machines: []Machine{}, Troubles: []Trouble{},
	}
	for _, t := range c.Troubles {
		f.Troubles = append(f.Troubles, Trouble{Condition: t.Condition, Reason: t.Text(), Waiting: t.Waiting})
	}
	if len(f.Troubles) > 0 { // each has a line of its own
		f.Reason = f.Troubles[0].Condition + ": " + f.Troubles[0].Reason
	}
	for _, cond := range c.Conditions {
		f.Conditions = append(f.Conditions, Condition{Type: cond.Type, Status: string(cond.Status), Reason: cond.Reason, Message: cond.Message})
	}
	for _, m := range c.Machines {
		f.Machines = append(f.Machines, Machine{
			Name: m.Name, Node: m.Node, Version: m.Version, Phase: m.Phase, ControlPlane: m.ControlPlane, Ready: m.Ready, Reason: m.Reason,
		})
	}
	return f
}

func ref(o Object) string { return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name) }
