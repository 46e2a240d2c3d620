package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

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
	if p := c.replaced; p != nil {
		r.blame(cmp.Or(p.Object, "management cluster "+r.Cluster.Name), p.Reason, p.Hint)
	}
	for _, p := range inOrder(c.failed) {
		r.blame(p.Object, p.Reason, p.Hint)
	}
	c.judgeHandOver()
	c.judgeCopies()
	c.judgeOwnRecords()
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
		case s.Suspended && s.pausedWith != (kube.Key{}): // one problem stands for all that is paused with it
		case s.pauses && !s.Suspended:
			c.blamePause(&s)
		case s.Suspended:
			r.blame(ref(s), "suspended: Flux does not reconcile it"+s.whereSuspended(), c.resumeHint(&s))
		case !s.Ready:
			r.blame(ref(s), s.Reason, s.behind)
		}
	}
	c.judgeBehind()
	for i := range r.Clusters {
		if r.Clusters[i].CopyOf == "" { // no controller acts on a copy, so its conditions are those of the original
			r.blameCluster(&r.Clusters[i])
		}
	}
	c.judgeOwners()
}

// blamePause adds the problem that an environment is paused in Git.
func (c *collector) blamePause(clusters *Object) {
	paused := 0
	for _, o := range append(append([]Object{}, c.report.Flux.Sources...), c.report.Flux.Applied...) {
		if o.Suspended && o.pausedWith == (kube.Key{Namespace: clusters.Namespace, Name: clusters.Name}) {
			paused++
		}
	}
	environment, _, _ := strings.Cut(strings.TrimPrefix(clusters.Name, "clusters-"), ".")
	c.report.blame(ref(*clusters), fmt.Sprintf("environment %s is paused, in Git: it suspends %s", environment, plain.Count(paused, "object")),
		"`fleetctl environment resume "+environment+"`")
}

// judgeBehind adds a problem if the management cluster has not applied the newest commit of a fleet repo that this machine serves. All that
// the report tells is about an earlier commit then. The newest commit of a remote may be one that this clone does not have.
func (c *collector) judgeBehind() {
	r := c.report
	if r.Git.Served == nil || !*r.Git.Served || r.Git.Revision == "" {
		return
	}
	for _, o := range append(append([]Object{}, r.Flux.Sources...), r.Flux.Applied...) {
		if o.Namespace != flux.Namespace || o.Name != flux.Name || !o.Ready || o.Suspended {
			continue
		}
		branch, commit, _ := strings.Cut(o.Revision, "@sha1:")
		if branch == r.Git.Branch && commit != r.Git.Revision {
			r.blame(ref(o), fmt.Sprintf("it has %s, and not yet %s of the fleet repo", shortRevision(o.Revision), shortRevision(r.Git.Revision)),
				"wait a moment; `fleetctl status --watch` shows when Flux has applied it")
			return
		}
	}
}

// judgeOwners adds a problem for each workload cluster that this management cluster acts on although another one has taken it over, for
// example because an old copy of this management cluster was restored, and for each whose record of its owner is damaged.
func (c *collector) judgeOwners() {
	for _, w := range c.report.Clusters {
		if w.damaged {
			c.report.blame(fmt.Sprintf("Cluster %s/%s", w.Namespace, w.Name),
				"its record of its owner is damaged: annotation "+capi.OwnerMark,
				"find out whether another management cluster manages it; if none does, delete the record: `"+diag.ShellCommand(
					"kubectl", "annotate", "-n", w.Namespace, "clusters.cluster.x-k8s.io", w.Name, capi.OwnerMark+"-")+"`")
		}
		if !w.TwoOwners {
			continue
		}
		if w.contradicted {
			c.blameTwo(&w)
			continue
		}
		c.report.blame(fmt.Sprintf("Cluster %s/%s", w.Namespace, w.Name), TwoOwnersText(w.record),
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
	case o.letGo:
		return ", because its cluster is handed over, detached or drained"
	}
	return ", on the cluster alone: not in Git"
}

// blameCluster adds one problem for each cause in a cluster's conditions, and one hint for all of them. Conditions that only wait for
// another object are no causes: one problem counts them. If all of them wait, the first stands for them. Fleet.Troubles has every one.
func (r *Report) blameCluster(w *Fleet) {
	if w.Ready {
		return
	}
	object := fmt.Sprintf("Cluster %s/%s", w.Namespace, w.Name)
	if w.Available || len(w.Troubles) == 0 {
		hint := ""
		if w.Available && w.Flux != nil {
			hint = w.Flux.hint
		}
		r.blame(object, w.Reason, hint)
	}
	if w.Available {
		return
	}
	causes, waiting := w.causes()
	for _, t := range causes {
		r.blame(object, t.Reason, "")
		r.Problems[len(r.Problems)-1].Condition = t.Condition
	}
	if waiting > 0 {
		r.blame(object, plain.Count(waiting, "more condition")+", waiting for another object", "")
	}
	if len(w.Troubles) > 0 {
		r.Problems[len(r.Problems)-1].Hint = "`fleetctl why " + w.Namespace + "/" + w.Name + "` looks for the first cause"
	}
}

// causes returns the troubles that do not only wait for another object, or else the first, and how many of the others wait.
func (f *Fleet) causes() (causes []Trouble, waiting int) {
	for i, t := range f.Troubles { // sorted: those that wait come last
		if t.Waiting && i > 0 {
			return causes, len(f.Troubles) - i
		}
		causes = append(causes, t)
	}
	return causes, 0
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
		if paused := o.Suspended && o.pausedWith != (kube.Key{}); out.Ready && !paused && (!o.Ready || o.Suspended) {
			reason := o.Reason
			if o.Suspended {
				reason = "it is suspended"
			}
			out.Ready, out.Reason, out.hint = false, fmt.Sprintf("Flux is not ready there yet: %s: %s", ref(o), reason), o.behind
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
			r.blame(p.Type+" provider "+p.Name, p.Reason, r.logsHint(&p))
		}
		if text, ended := p.credentialsText(r.Time); ended {
			r.blame(p.Type+" provider "+p.Name, text, howToRenew)
		}
	}
	for _, d := range r.Flux.Controllers {
		if !d.Ready {
			r.blame("Flux's "+d.Name, d.Reason, r.logsHint(&d))
		}
	}
	if !r.Flux.Installed && r.knows(partFlux) {
		r.blame("Flux", "it is not installed", "`fleetctl init` installs it")
	}
}

// logsHint says how to find out why a provider or a controller does not run.
func (r *Report) logsHint(i *Item) string {
	switch {
	case i.deployment == "":
		return "`fleetctl init` installs what is missing"
	case r.Cluster.Host == string(v1alpha1.HostEmbedded) && r.Cluster.PivotedTo == "":
		return "`fleetctl host logs " + i.Namespace + "/" + i.deployment + "` shows its log"
	}
	return "`fleetctl support-bundle` gathers its log and its events"
}
