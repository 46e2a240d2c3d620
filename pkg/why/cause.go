package why

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// summing are conditions of Cluster API that tell how the parts of an object are: where a part has a word of its own, that comes first.
var summing = []string{
	"Available", "Ready", "InfrastructureReady", "BootstrapConfigReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "ControlPlaneMachinesReady", "WorkersAvailable",
	"WorkerMachinesReady", "MachinesReady", "MachinesCreated", "Initialized", "RemoteConnectionProbe", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy",
	"NodeHealthy", "NodeReady", "ControlPlaneReady", "HealthCheckSucceeded",
}

// downstream are the words of Flux for what is applied and not healthy yet: the cause is in what was applied.
var downstream = []string{"HealthCheckFailed", "Progressing", "ProgressingWithRetry", "DependencyNotReady", "InstallFailed", "UpgradeFailed"}

// candidate is a trouble on the way to being a cause; the lower its weight, the more it explains.
type candidate struct {
	Cause

	weight int
}

const (
	weightWrong   = iota // wrong, in its own words
	weightSummary        // wrong, in a condition that sums up others, of which none says anything
	weightWaiting        // waits, and what it waits for says nothing
	weightFollows        // follows from something else
)

// causes are the troubles that nothing else explains, the first cause first. Of a cluster that is there and does not run, what keeps it from running
// comes before what keeps commits from it.
func (c *chain) causes() []Cause {
	delivery, running := c.deliveryCandidates(), c.runningCandidates()
	var all []candidate
	if c.root == nil || len(running) == 0 || running[0].weight > weightWrong {
		all = c.both(delivery, running)
	} else {
		all = slices.Concat(running, ofWeight(delivery, weightWrong))
	}
	if c.cluster != nil && c.cluster.Available { // what is under way in a cluster that works
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

// both puts what is wrong on the way to the management cluster before what the cluster waits for.
func (c *chain) both(delivery, running []candidate) []candidate {
	if wrong := ofWeight(delivery, weightWrong); len(wrong) > 0 {
		return append(wrong, ofWeight(running, weightWrong)...)
	}
	if len(running) > 0 && c.root != nil {
		return running
	}
	if len(running) > 0 && running[0].weight == weightWrong { // no provider runs: it makes no Cluster either
		return running
	}
	return delivery
}

func ofWeight(all []candidate, weight int) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.weight != weight })
}

// lightest are those with the lowest weight that there is.
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

// deliveryCandidates are what keeps a commit from the management cluster: of what is wrong the first, for the rest follows from it.
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

// codeAbsent stands for a condition's reason where Flux has not made the object.
const codeAbsent = "Absent"

func (c *chain) absentReason() string {
	if d := c.from.Declared; d != nil {
		return "Flux has not made it; " + d.File + " declares it"
	}
	return "there is none"
}

// explains tells whether what Flux waits for, by its words, is the cluster itself, which is not well.
func (c *chain) explains(t Trouble) bool {
	if t.code == "DependencyNotReady" || t.code == "Progressing" || t.code == "ProgressingWithRetry" {
		return true
	}
	waits := t.code == "HealthCheckFailed" || strings.Contains(t.Reason, "context deadline exceeded") || strings.Contains(t.Reason, "timed out waiting")
	return waits && c.root != nil && (c.cluster == nil || !c.cluster.Available)
}

// runningCandidates are what keeps the cluster from running: providers that do not, then what its parts say.
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
		found = found[:1] // the others wait for it: they come about in this order
	}
	return found
}

// weigh says how much a trouble of a part explains: what sums up its parts, or waits, follows from a part below it that has a trouble itself.
func (c *chain) weigh(p partLink, t Trouble) int {
	below := c.brokenBelow(p.part)
	sums := slices.Contains(summing, t.Condition)
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

// saysNothing tells that a condition only sums up an object which has another trouble: a machine that is NotReady because its node is not there.
func (c *chain) saysNothing(p partLink, t Trouble) bool {
	return (t.Condition == "Available" || t.Condition == "Ready") && t.Reason == t.code && len(c.links[p.link].Troubles) > 1
}

// brokenBelow tells whether anything that p owns has a trouble.
func (c *chain) brokenBelow(p *capi.Part) bool {
	found := false
	p.Walk(func(inner *capi.Part, depth int) {
		if depth > 0 && slices.ContainsFunc(c.parts, func(o partLink) bool { return o.part == inner && c.links[o.link].broken() }) {
			found = true
		}
	})
	return found
}

// workloadCandidates is the first of what brings Flux to a cluster that runs.
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
