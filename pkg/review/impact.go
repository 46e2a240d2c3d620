package review

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// ImpactKind says what a change does.
type ImpactKind string

// The kinds in the order of reports, the gravest first.
const (
	ImpactDeleteCluster   ImpactKind = "delete-cluster"
	ImpactUnprotect       ImpactKind = "unprotect-cluster"
	ImpactRemovePool      ImpactKind = "remove-pool"
	ImpactReplaceMachines ImpactKind = "replace-machines"
	ImpactUpgrade         ImpactKind = "upgrade"
	ImpactScale           ImpactKind = "scale"
	ImpactLimits          ImpactKind = "change-limits"
	ImpactAddCluster      ImpactKind = "add-cluster"
	ImpactAddPool         ImpactKind = "add-pool"
	ImpactOther           ImpactKind = "other"
)

var gravity = []ImpactKind{
	ImpactDeleteCluster, ImpactUnprotect, ImpactRemovePool, ImpactReplaceMachines, ImpactUpgrade, ImpactScale, ImpactLimits,
	ImpactAddCluster, ImpactAddPool, ImpactOther,
}

// Impact is one effect of a change, on one cluster or equally on several.
type Impact struct {
	Kind        ImpactKind `json:"kind"`
	Summary     string     `json:"summary"`
	Environment string     `json:"environment,omitempty"`
	// Cluster is the affected cluster. If there are several, Clusters has all of them.
	Cluster  string   `json:"cluster,omitempty"`
	Clusters []string `json:"clusters,omitempty"`
	// Pool of the machines. "control plane" is a pool, too.
	Pool string `json:"pool,omitempty"`
	// Machines counts the machines that are replaced, made or deleted, as far as the files tell their number.
	Machines int    `json:"machines,omitempty"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	// Reason of a replacement.
	Reason string `json:"reason,omitempty"`
	// Requested says that a cluster's deletion was prepared by `fleetctl cluster remove`, or that the loss of its protection is the first step
	// of that command.
	Requested bool `json:"requested,omitempty"`
	// Runs says that a cluster or a pool that leaves the repo continues to run.
	Runs bool `json:"runs,omitempty"`
	// BothSteps says that the compared range has both steps of `fleetctl cluster remove` for a cluster that leaves the
	// repo.
	BothSteps bool `json:"bothSteps,omitempty"`
	// Suspended says that Flux applies the change only when the cluster is resumed.
	Suspended bool `json:"suspended,omitempty"`
	// Objects that change, where Kind is other.
	Objects int `json:"objects,omitempty"`

	// File declares the cluster that leaves the repo; the history of the file is searched. partly says that some of the
	// cluster's objects are kept.
	File   string `json:"-"`
	partly bool
}

// clusterID is the place where a cluster is declared.
type clusterID struct{ environment, name string }

func (c clusterID) String() string {
	if c.environment == "" {
		return c.name
	}
	return c.environment + "/" + c.name
}

func clusterOf(c *ObjectChange) clusterID { return clusterID{c.Environment, c.Cluster} }

// impactOf describes the effect of changed objects. before and after are all objects of the two sides. failed are the
// files that one side could not render: a cluster that such a file declares on both sides is neither added nor removed.
func impactOf(changes []ObjectChange, before, after []*render.Object, failed map[string]bool) []Impact {
	j := &judge{
		failed: failed, whole: map[clusterID]bool{}, touched: map[clusterID]bool{}, unprotected: map[clusterID]bool{},
		others: map[clusterID][]*ObjectChange{}, before: before,
	}
	was, now := sideOf(before), sideOf(after)
	for i := range changes {
		j.cluster(&changes[i], was, now)
	}
	j.staying(was, now)
	for i := range changes {
		if !j.whole[clusterOf(&changes[i])] {
			j.machines(&changes[i], was, now)
		}
	}
	for i := range changes {
		j.rest(&changes[i])
	}
	j.foldUpgrades()
	j.foldLimits()
	return append(group(j.found), j.counted()...)
}

// judge collects the effects of changes.
type judge struct {
	// failed are the files that one side could not render.
	failed map[string]bool
	found  []Impact
	// whole are the clusters that are added or removed. The report does not mention their objects separately. touched
	// are the clusters with an impact on their machines.
	whole, touched, unprotected map[clusterID]bool
	others                      map[clusterID][]*ObjectChange
	before                      []*render.Object
}

func (j *judge) add(c *ObjectChange, i Impact) {
	o := firstOf(c.new, c.old)
	j.addTo(o, i, o.Suspended)
}

func (j *judge) addTo(o *render.Object, i Impact, suspended bool) {
	i.Environment, i.Cluster, i.Suspended = o.Environment, cmp.Or(o.Cluster, o.Name), suspended
	j.touched[clusterIn(o)] = true
	j.found = append(j.found, i)
}

func is(c *ObjectChange, group, kind string) bool {
	g, _, versioned := strings.Cut(c.APIVersion, "/")
	if !versioned {
		g = ""
	}
	return g == group && c.Kind == kind
}

const (
	capiGroup = "cluster.x-k8s.io"
	helmGroup = "helm.toolkit.fluxcd.io"
)

// cluster finds clusters that are added or removed.
func (j *judge) cluster(c *ObjectChange, before, after *side) {
	if !is(c, capiGroup, "Cluster") || c.Action == Changed {
		return
	}
	j.whole[clusterOf(c)] = true
	if j.isUnknown(c, before, after) {
		return
	}
	if c.Action == Added {
		j.add(c, Impact{Kind: ImpactAddCluster, Machines: machinesIn(after.all, clusterOf(c))})
		return
	}
	g := before.guardOf(c.old, after)
	i := before.removal(g, after)
	i.Machines = machinesIn(before.all, clusterOf(c))
	j.addTo(c.old, i, g.suspends(after))
}

// isUnknown tells whether a cluster is missing on one side only because its file could not be rendered there. The
// finding reports this.
func (j *judge) isUnknown(c *ObjectChange, before, after *side) bool {
	here, there := after, before
	if c.Action == Removed {
		here, there = before, after
	}
	release := here.guardOf(firstOf(c.new, c.old), nil).release
	return release != nil && j.failed[release.Source.File] && there.same(release) != nil
}

func isRelease(o *render.Object) bool {
	return o.Kind == "HelmRelease" && strings.HasPrefix(o.APIVersion, helmGroup+"/")
}

// machinesIn counts the machines that a cluster's objects ask for.
func machinesIn(all []*render.Object, cluster clusterID) int {
	n := 0
	for _, o := range all {
		if o.Environment == cluster.environment && o.Cluster == cluster.name {
			if m := machinesOf(o); m != nil && m.Spec.Replicas != nil {
				n += *m.Spec.Replicas
			}
		}
	}
	return n
}

// machines finds machines that are replaced, made or deleted in a cluster that stays.
func (j *judge) machines(c *ObjectChange, before, after *side) {
	if strings.HasSuffix(c.Kind, "MachinePool") && !is(c, capiGroup, "MachinePool") {
		j.cloudPool(c)
		return
	}
	was, now := machinesOf(c.old), machinesOf(c.new)
	switch {
	case was == nil && now == nil:
	case c.Action == Added:
		j.add(c, Impact{Kind: ImpactAddPool, Pool: now.pool(c), Machines: now.count(), To: now.size()})
	case c.Action == Removed:
		j.add(c, Impact{Kind: ImpactRemovePool, Pool: was.pool(c), Machines: was.count(), From: was.size(), Runs: !before.open(c.old, after)})
	default:
		j.changed(c, was, now)
	}
}

// changed compares two states of a control plane or pool.
func (j *judge) changed(c *ObjectChange, was, now *machines) {
	pool := now.pool(c)
	reason := ""
	switch {
	case was.version() != now.version():
		j.add(c, Impact{Kind: ImpactUpgrade, Pool: pool, From: was.version(), To: now.version(), Machines: was.count()})
	case was.infrastructure() != now.infrastructure():
		reason = "machine template changes"
	case was.bootstrap() != now.bootstrap():
		reason = "bootstrap configuration changes"
	}
	if reason != "" {
		j.add(c, Impact{Kind: ImpactReplaceMachines, Pool: pool, Machines: was.count(), From: was.size(), Reason: reason})
	}
	if a, b := was.limits(), now.limits(); a != b {
		j.add(c, Impact{Kind: ImpactLimits, Pool: pool, From: cmp.Or(a, was.size()), To: cmp.Or(b, now.size())})
		return
	}
	if was.Spec.Replicas != nil && now.Spec.Replicas != nil && *was.Spec.Replicas != *now.Spec.Replicas {
		j.add(c, Impact{Kind: ImpactScale, Pool: pool, From: was.size(), To: now.size()})
	}
}

// cloudPool compares the machines of a pool that the cloud makes, because such a pool has no template whose name would
// change.
func (j *judge) cloudPool(c *ObjectChange) {
	if c.Action != Changed {
		return // the MachinePool has the size
	}
	pool := strings.TrimPrefix(c.Name, c.Cluster+"-")
	was, now := fieldsOf(c.old), fieldsOf(c.new)
	a, b := takeLimits(was), takeLimits(now)
	if a != b {
		j.add(c, Impact{Kind: ImpactLimits, Pool: pool, From: a, To: b})
	}
	if !sameMachines(was, now) {
		j.add(c, Impact{Kind: ImpactReplaceMachines, Pool: pool, Machines: j.sizeOf(c), Reason: cloudReason})
	}
}

// sizeOf returns how many machines the MachinePool of a cloud's pool had.
func (j *judge) sizeOf(c *ObjectChange) int {
	for _, o := range j.before {
		if o.Kind == "MachinePool" && o.Name == c.Name && o.Namespace == c.Namespace && o.Cluster == c.Cluster {
			if m := machinesOf(o); m != nil {
				return m.count()
			}
		}
	}
	return 0
}

// rest counts the changed objects that no other impact covers.
func (j *judge) rest(c *ObjectChange) {
	id := clusterOf(c)
	if j.whole[id] || j.onlyWhole(c) {
		return
	}
	o := firstOf(c.new, c.old)
	if j.touched[id] && id.name != "" {
		// The impact on machines covers the templates of machines, and the objects that declare them.
		for _, end := range []string{"MachineTemplate", "ConfigTemplate", "NodeadmConfig", "MachineDeployment", "MachinePool", "ControlPlane"} {
			if strings.HasSuffix(c.Kind, end) {
				return
			}
		}
		if isRelease(o) || j.unprotected[id] && (is(c, capiGroup, "Cluster") || is(c, "", "Namespace")) {
			return
		}
	}
	j.others[id] = append(j.others[id], c)
}

// onlyWhole tells whether an object is applied only to workload clusters that come or go as a whole.
func (j *judge) onlyWhole(c *ObjectChange) bool {
	return len(c.Targets) > 0 && !slices.ContainsFunc(c.Targets,
		func(target string) bool { return !j.whole[clusterID{c.Environment, target}] })
}

// counted makes one line for each environment and each kind of impact on its objects.
func (j *judge) counted() []Impact {
	type line struct {
		environment string
		action      Action
	}
	kinds, total := map[line]map[string]int{}, map[line]int{}
	for id, changes := range j.others {
		if len(changes) > 1 { // the objects are counted because their HelmRelease changes
			changes = slices.DeleteFunc(slices.Clone(changes),
				func(c *ObjectChange) bool { return c.Cluster != "" && isRelease(firstOf(c.new, c.old)) })
		}
		for _, c := range changes {
			at := line{id.environment, c.Action}
			if kinds[at] == nil {
				kinds[at] = map[string]int{}
			}
			kinds[at][c.Kind]++
			total[at]++
		}
	}
	var all []Impact
	actions := []Action{Removed, Changed, Added}
	for _, at := range slices.SortedFunc(maps.Keys(kinds), func(a, b line) int {
		return cmp.Or(cmp.Compare(a.environment, b.environment), cmp.Compare(slices.Index(actions, a.action), slices.Index(actions, b.action)))
	}) {
		objects := plain.Count(total[at], "other object")
		if at.environment != "" {
			objects += " of " + at.environment
		}
		words := "changes " + objects
		switch at.action {
		case Removed:
			words = "takes " + objects + " out of the repo"
		case Added:
			words = "adds " + objects
		case Changed:
		}
		all = append(all, Impact{
			Kind: ImpactOther, Environment: at.environment, Objects: total[at], Summary: words + ": " + plain.PerKind(kinds[at]),
		})
	}
	return all
}
