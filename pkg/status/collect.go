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
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Sources are the sources of a report. A nil Client means that the management cluster cannot be reached; Unreachable then has the reason.
type Sources struct {
	Cluster     Cluster
	Client      *kube.Client
	Unreachable error
	// Trouble is the result of host.Complainer, which explains why an API server does not answer; nil if the host found nothing.
	Trouble error
	// Repo is the folder of the fleet repo; empty if it is not known.
	Repo string
	// Served, if not nil, tells whether the fleet repo without a remote is being served.
	Served func(ctx context.Context) (bool, error)
}

// Collect reads all sources in parallel.
func Collect(ctx context.Context, from Sources) *Report {
	c := &collector{from: from, report: &Report{
		FormatVersion: "1", Time: time.Now().UTC().Truncate(time.Second), Ready: true, Cluster: from.Cluster,
		Providers: []Item{}, Flux: Flux{Controllers: []Item{}, Sources: []Object{}, Applied: []Object{}}, Clusters: []Fleet{},
		Unknown: []string{}, Problems: []Problem{},
	}}
	parts := []func(context.Context){c.git}
	if from.Client != nil {
		parts = append(parts, c.version, c.providers, c.flux, c.clusters, c.standby)
	}
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() { part(ctx) })
	}
	all.Wait()
	c.judge()
	return c.report
}

type collector struct {
	from   Sources
	mu     sync.Mutex
	report *Report
	failed []Problem
	uid    string // of the management cluster's namespace kube-system; "" where nothing is to be held against it
}

// missing records a source that could not be read.
func (c *collector) missing(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, Problem{Object: what, Reason: reason(err)})
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
	order := []string{repoServer, "fleet repo ", apiServer, partProviders, partFlux, partClusters, partStandby}
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
			Item{Name: d.Name, Namespace: flux.Namespace, Version: d.Image, Ready: d.Ready, Reason: d.Reason})
	}
	for _, s := range f.Sources {
		c.report.Flux.Sources = append(c.report.Flux.Sources, object(s))
	}
	for _, s := range append(f.Kustomizations, f.HelmReleases...) {
		c.report.Flux.Applied = append(c.report.Flux.Applied, object(s))
	}
}

func object(s flux.Object) Object {
	return Object{
		Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Revision: s.Revision, Ready: s.Ready, Suspended: s.Suspended,
		SuspendedInGit: s.SuspendedInGit, Reason: s.Reason,
		workload: s.Workload, byFleetctl: s.SuspendedByFleetctl,
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
	if !slices.ContainsFunc(clusters, func(cl capi.Cluster) bool { return cl.Owner.UID != "" }) {
		return
	}
	system := &corev1.Namespace{}
	if err := c.from.Client.Get(ctx, kube.Key{Name: "kube-system"}, system); err != nil {
		c.missing("owners of the workload clusters", err)
		return
	}
	c.uid = string(system.UID)
}

func workload(c capi.Cluster) Fleet {
	f := Fleet{
		Namespace: c.Namespace, Name: c.Name, Phase: c.Phase, Version: c.Version, Available: c.Available, Reason: c.Reason,
		Paused: c.Paused, Deleting: c.Deleting, Owner: c.Owner.ManagementCluster, Endpoint: c.Endpoint, record: c.Owner,
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

// judge adds the problems that keep the management cluster from being Ready.
func (c *collector) judge() {
	r := c.report
	if c.from.Client == nil {
		reason, hint := "it cannot be reached", "`fleetctl init` makes, starts or completes it"
		if err := c.from.Unreachable; err != nil {
			reason, hint = err.Error(), cmp.Or(diag.Hint(err), hint)
		}
		r.blame("management cluster "+r.Cluster.Name, reason, hint)
		return
	}
	slices.Sort(r.Unknown)
	if err := c.from.Trouble; err != nil {
		r.blame("host of management cluster "+r.Cluster.Name, err.Error(), diag.Hint(err))
	}
	for _, p := range inOrder(c.failed) {
		r.blame(p.Object, p.Reason, "")
	}
	if r.Standby != nil {
		c.atRest()
		c.judgeInstalled()
		c.judgeStandby()
		return
	}
	c.judgeInstalled()
	c.joinFlux()
	for _, s := range append(append([]Object{}, r.Flux.Sources...), r.Flux.Applied...) {
		switch {
		case s.Suspended:
			r.blame(ref(s), "suspended: Flux does not reconcile it"+s.whereSuspended(), s.resumeHint())
		case !s.Ready:
			r.blame(ref(s), s.Reason, "")
		}
	}
	for i := range r.Clusters {
		r.blameCluster(&r.Clusters[i])
	}
	c.judgeOwners()
}

// judgeOwners adds a problem for each workload cluster that this management cluster acts on although another one has taken it over, for
// example because an old copy of this management cluster was restored.
func (c *collector) judgeOwners() {
	for _, w := range c.report.Clusters {
		if c.uid == "" || w.record.UID == "" || w.record.UID == c.uid || w.Paused {
			continue
		}
		c.report.blame(fmt.Sprintf("Cluster %s/%s", w.Namespace, w.Name),
			fmt.Sprintf("TWO OWNERS: management cluster %s has taken it over (hand-over %d), but this one acts on it, too",
				w.record.ManagementCluster, w.record.Epoch),
			"decide which of them manages it; if it is the other one, run `fleetctl cluster detach "+w.Namespace+"/"+w.Name+
				"` here: it deletes nothing")
	}
}

// whereSuspended says whether the object is suspended in Git or only on the cluster.
func (o *Object) whereSuspended() string {
	switch {
	case o.SuspendedInGit:
		return ", in Git"
	case o.byFleetctl:
		return ""
	}
	return ", on the cluster alone: not in Git"
}

func (o *Object) resumeHint() string {
	if o.SuspendedInGit {
		return "`fleetctl cluster resume`, or resume of its environment, feature or channel"
	}
	if o.byFleetctl {
		return "`fleetctl init`"
	}
	return "`fleetctl cluster resume NAME --now`, or resume of its environment, feature or channel"
}

// blameCluster adds one problem for each cause in a cluster's conditions, and one hint for all of them.
func (r *Report) blameCluster(w *Fleet) {
	if w.Ready {
		return
	}
	object := fmt.Sprintf("Cluster %s/%s", w.Namespace, w.Name)
	if w.Available || len(w.Troubles) == 0 {
		r.blame(object, w.Reason, "")
	}
	if w.Available {
		return
	}
	for _, t := range w.Troubles {
		r.blame(object, t.Reason, "")
		r.Problems[len(r.Problems)-1].Condition = t.Condition
	}
	if len(w.Troubles) > 0 {
		r.Problems[len(r.Problems)-1].Hint = "`fleetctl why " + w.Namespace + "/" + w.Name + "` looks for the first cause"
	}
}

// joinFlux moves the Flux objects that work on a workload cluster from the management cluster's list to that cluster. They are not Ready
// while the cluster comes up, which is no problem of the management cluster.
func (c *collector) joinFlux() {
	r := c.report
	parts := map[string][]Object{}
	for _, o := range r.Flux.Applied {
		if o.workload != "" {
			parts[o.Namespace] = append(parts[o.Namespace], o)
		}
	}
	joined := map[string]bool{}
	for i := range r.Clusters {
		w := &r.Clusters[i]
		w.Flux = workloadFlux(w.Name, parts[w.Namespace])
		w.Ready = w.Available && r.knows(partFlux) && (w.Flux == nil || w.Flux.Ready)
		joined[w.Namespace] = true
		switch {
		case !w.Available || w.Ready:
		case w.Flux == nil:
			w.Reason = "the state of its Flux could not be read"
		default:
			w.Reason = w.Flux.Reason
		}
	}
	r.Flux.Applied = slices.DeleteFunc(r.Flux.Applied, func(o Object) bool { return o.workload != "" && joined[o.Namespace] })
}

// workloadFlux sums up the objects that install Flux on a cluster; nil if there are none.
func workloadFlux(cluster string, objects []Object) *WorkloadFlux {
	var out *WorkloadFlux
	for _, part := range flux.WorkloadParts() {
		i := slices.IndexFunc(objects, func(o Object) bool { return o.workload == part && strings.HasPrefix(o.Name, cluster+"-") })
		if i < 0 {
			continue
		}
		o := objects[i]
		if out == nil {
			out = &WorkloadFlux{Mode: "own", Ready: true}
		}
		out.Revision = o.Revision
		if part == "apps" {
			out.Mode = "remote"
		}
		if out.Ready && (!o.Ready || o.Suspended) {
			reason := o.Reason
			if o.Suspended {
				reason = "it is suspended"
			}
			out.Ready, out.Reason = false, fmt.Sprintf("Flux is not ready there yet: %s: %s", ref(o), reason)
		}
	}
	return out
}

// judgeInstalled adds problems of what init installs: providers, Flux, and the server of the fleet repo.
func (c *collector) judgeInstalled() {
	r := c.report
	if r.Git.Served != nil && !*r.Git.Served {
		again := "`fleetctl init` serves it again"
		if r.Cluster.PivotedTo != "" {
			again = "`fleetctl host start` serves it again"
		}
		r.blame("fleet repo "+r.Git.Repo, "it is not being served: Flux sees no new commits", again)
	}
	if len(r.Providers) == 0 && r.knows(partProviders) {
		r.blame("providers", "none are installed", "`fleetctl init` installs them")
	}
	for _, p := range r.Providers {
		if !p.Ready {
			r.blame(p.Type+" provider "+p.Name, p.Reason, "")
		}
		if text, ended := p.credentialsText(r.Time); ended {
			r.blame(p.Type+" provider "+p.Name, text, "change them at their source, and run `fleetctl init`; `fleetctl credentials` lists them")
		}
	}
	for _, d := range r.Flux.Controllers {
		if !d.Ready {
			r.blame("Flux's "+d.Name, d.Reason, "")
		}
	}
	if !r.Flux.Installed && r.knows(partFlux) {
		r.blame("Flux", "it is not installed", "`fleetctl init` installs it")
	}
}

func ref(o Object) string { return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name) }
