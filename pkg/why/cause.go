package why

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// summing are conditions of Cluster API that sum up the parts of an object. If a part has a trouble of its own, the part's trouble comes
// first.
var summing = []string{
	"Available", "Ready", "InfrastructureReady", "BootstrapConfigReady", "ControlPlaneInitialized", "ControlPlaneAvailable",
	"ControlPlaneMachinesReady", "WorkersAvailable",
	"WorkerMachinesReady", "MachinesReady", "MachinesCreated", "Initialized", "RemoteConnectionProbe", "EtcdClusterHealthy",
	"ControlPlaneComponentsHealthy",
	"NodeHealthy", "NodeReady", "ControlPlaneReady", "HealthCheckSucceeded",
}

// downstream are Flux's reasons for applied objects that are not healthy yet. The cause is in the applied objects.
var downstream = []string{
	"HealthCheckFailed", "Progressing", "ProgressingWithRetry", "DependencyNotReady",
	"InstallFailed", "UpgradeFailed",
}

// candidate is a trouble that may be a cause. The lower its weight, the more it explains.
type candidate struct {
	Cause

	weight int
}

const (
	weightWrong   = iota // a fault of the object itself
	weightSummary        // a fault in a condition that sums up parts, none of which has a fault
	weightWaiting        // waits for an object without a fault
	weightFollows        // a consequence of another fault
)

// causes are the troubles that no other trouble explains, the first cause first. If a cluster exists but does not run, the reasons for that
// come before the reasons why commits do not reach it.
func (c *chain) causes() []Cause {
	delivery, running := c.deliveryCandidates(), c.runningCandidates()
	var all []candidate
	if c.root == nil || len(running) == 0 || running[0].weight > weightWrong {
		all = c.both(delivery, running)
	} else {
		all = slices.Concat(running, ofWeight(delivery, weightWrong))
	}
	if c.cluster != nil && c.cluster.Available { // work in progress in a working cluster is no cause
		all = slices.DeleteFunc(slices.Clone(all), func(o candidate) bool { return o.weight == weightWaiting && o.Stage != StageWorkloadFlux })
	}
	if len(all) == 0 {
		all = c.workloadCandidates()
	}
	var out []Cause
	for _, each := range all {
		if !slices.ContainsFunc(out, func(o Cause) bool { return o.Object == each.Object && o.Reason == each.Reason }) {
			out = append(out, each.Cause)
		}
	}
	return out
}

// both sorts faults on the way to the management cluster before conditions of the cluster that wait.
func (c *chain) both(delivery, running []candidate) []candidate {
	if wrong := ofWeight(delivery, weightWrong); len(wrong) > 0 {
		return append(wrong, ofWeight(running, weightWrong)...)
	}
	if len(running) > 0 && c.root != nil {
		return running
	}
	if len(running) > 0 && running[0].weight == weightWrong { // without a running provider no Cluster is made either
		return running
	}
	return delivery
}

func ofWeight(all []candidate, weight int) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.weight != weight })
}

// lightest returns the candidates with the lowest weight.
func lightest(all []candidate) []candidate {
	if len(all) == 0 {
		return nil
	}
	least := slices.MinFunc(all, func(a, b candidate) int { return cmp.Compare(a.weight, b.weight) }).weight
	return ofWeight(all, least)
}

func (c *chain) candidate(l *Link, t Trouble, weight int) candidate {
	_, name, _ := strings.Cut(l.Object, "/")
	words := []string{}
	for _, w := range c.words(l.kind, name) {
		if !strings.Contains(t.Reason, w) && !strings.Contains(w, t.Reason) || len(w) > len(t.Reason) {
			words = append(words, w)
		}
	}
	cause := Cause{Stage: l.Stage, Object: l.Object, Condition: t.Condition, Reason: t.Reason, Since: t.Since, Words: words}
	cause.Remedy = remedyFor(l, t, words)
	return candidate{Cause: cause, weight: weight}
}

// deliveryCandidates returns the first fault that keeps a commit from the management cluster. Later faults follow from it.
func (c *chain) deliveryCandidates() []candidate {
	var all []candidate
	for i := range c.links {
		l := &c.links[i]
		if !slices.Contains([]Stage{StageCommit, StageSource, StageKustomization, StageRelease}, l.Stage) {
			continue
		}
		if l.State == StateAbsent && c.root == nil {
			all = append(all, c.candidate(l, Trouble{Reason: c.absentReason(), code: codeAbsent}, weightFollows))
		}
		for _, t := range l.Troubles {
			weight := weightWrong
			switch {
			case t.Waiting:
				weight = weightWaiting
			case slices.Contains(downstream, t.code) && c.explains(t):
				weight = weightFollows
			}
			all = append(all, c.candidate(l, t, weight))
		}
	}
	found := lightest(all)
	if len(found) > 0 && found[0].weight == weightWrong {
		return slices.DeleteFunc(found, func(o candidate) bool { return o.Object != found[0].Object })
	}
	return found
}

// codeAbsent is used as the reason if Flux has not made the object.
const codeAbsent = "Absent"

func (c *chain) absentReason() string {
	if d := c.from.Declared; d != nil {
		return "Flux has not made it; " + d.File + " declares it"
	}
	return "there is none"
}

// explains tells whether Flux's message says that it waits for the cluster itself, which is not healthy.
func (c *chain) explains(t Trouble) bool {
	if t.code == "DependencyNotReady" || t.code == "Progressing" || t.code == "ProgressingWithRetry" {
		return true
	}
	waits := t.code == "HealthCheckFailed" || strings.Contains(t.Reason, "context deadline exceeded") ||
		strings.Contains(t.Reason, "timed out waiting")
	return waits && c.root != nil && (c.cluster == nil || !c.cluster.Available)
}

// runningCandidates returns what keeps the cluster from running: providers that do not run, then troubles of its parts.
func (c *chain) runningCandidates() []candidate {
	var all []candidate
	for i := range c.links {
		if l := &c.links[i]; l.Stage == StageControllers && l.State == StateWrong {
			for _, t := range l.Troubles {
				all = append(all, c.candidate(l, t, weightWrong))
			}
		}
	}
	for _, p := range c.parts {
		l := &c.links[p.link]
		for _, t := range l.Troubles {
			all = append(all, c.candidate(l, t, c.weigh(p, t)))
		}
	}
	found := lightest(slices.DeleteFunc(all, func(o candidate) bool { return o.weight == weightFollows }))
	if len(found) > 1 && found[0].weight == weightWaiting {
		found = found[:1] // the others wait for this one
	}
	return found
}

// weigh returns the weight of a part's trouble. A summary, or a condition that waits, follows from a part below it that has a trouble
// itself.
func (c *chain) weigh(p partLink, t Trouble) int {
	below := c.brokenBelow(p.part)
	sums := slices.Contains(summing, t.Condition)
	if p.part.GetKind() == "MachineHealthCheck" { // It sums up machines that it does not own.
		below, sums = c.machinesNotStarted(), c.brokenMachine(func(*Link) bool { return true })
	}
	switch {
	case t.Waiting && below, sums && below, c.saysNothing(p, t):
		return weightFollows
	case t.Waiting:
		return weightWaiting
	case sums:
		return weightSummary
	}
	return weightWrong
}

// saysNothing tells whether a condition only sums up an object with another trouble, such as a machine that is NotReady because it has no
// node.
func (c *chain) saysNothing(p partLink, t Trouble) bool {
	return (t.Condition == "Available" || t.Condition == "Ready") && t.Reason == t.code && len(c.links[p.link].Troubles) > 1
}

// brokenBelow tells whether an object that p owns has a trouble.
func (c *chain) brokenBelow(p *capi.Part) bool {
	found := false
	p.Walk(func(inner *capi.Part, depth int) {
		if depth > 0 && slices.ContainsFunc(c.parts, func(o partLink) bool { return o.part == inner && c.links[o.link].broken() }) {
			found = true
		}
	})
	return found
}

// machinesNotStarted tells whether there are broken machines, and no health check has found one of them unhealthy. A health check counts a
// machine that has not started yet among those of which it replaces none, so while a cluster starts, every health check complains.
func (c *chain) machinesNotStarted() bool {
	unhealthy := func(l *Link) bool {
		return slices.ContainsFunc(l.Troubles, func(t Trouble) bool { return t.Condition == "HealthCheckSucceeded" })
	}
	return c.brokenMachine(func(*Link) bool { return true }) && !c.brokenMachine(unhealthy)
}

// brokenMachine tells whether a machine of the cluster has a trouble, and fits.
func (c *chain) brokenMachine(fits func(*Link) bool) bool {
	return slices.ContainsFunc(c.parts, func(p partLink) bool {
		l := &c.links[p.link]
		return p.part.GetKind() == "Machine" && l.broken() && fits(l)
	})
}

// workloadCandidates returns the first trouble of the objects that install Flux on a running cluster.
func (c *chain) workloadCandidates() []candidate {
	var all []candidate
	for i := range c.links {
		l := &c.links[i]
		if l.Stage != StageWorkloadFlux {
			continue
		}
		for _, t := range l.Troubles {
			weight := weightWrong
			if t.Waiting || t.code == "DependencyNotReady" {
				weight = weightWaiting
			}
			all = append(all, c.candidate(l, t, weight))
		}
	}
	return lightest(all)
}
