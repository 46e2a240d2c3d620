package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// TeardownPlan is what a teardown will do.
type TeardownPlan struct {
	// Steps of the teardown in order, for people to read.
	Steps    []string          `json:"steps"`
	Clusters []TeardownCluster `json:"clusters"`
}

// TeardownCluster is a workload cluster that a teardown will delete.
type TeardownCluster struct {
	// Name is NAMESPACE/NAME.
	Name     string `json:"name"`
	Machines int    `json:"machines"`
	// Drained are the resources that Kubernetes made in the cloud from inside the cluster. An item that stays has the reason.
	Drained []drain.Item `json:"drained,omitempty"`
	// NotDrained says why these resources are not known, or why they stay.
	NotDrained string `json:"notDrained,omitempty"`
}

// mostItems bounds the items of one workload cluster in a plan, as MostText bounds the length of each.
const mostItems = 20

// plan looks into the workload clusters that will be deleted, side by side, and lists the steps in order. A workload cluster that does not
// answer is deleted, too, and the plan says so.
func (t *teardown) plan(ctx context.Context) *TeardownPlan {
	t.inside = nil
	if t.opts.DeleteClusters && len(t.clusters) > 0 {
		t.lookIntoAll(ctx)
	}
	p := &TeardownPlan{Clusters: []TeardownCluster{}}
	for _, in := range t.inside {
		p.Clusters = append(p.Clusters, t.planned(in))
	}
	p.Steps = t.planSteps(p.Clusters)
	return p
}

// lookIntoAll looks into the workload clusters, side by side.
func (t *teardown) lookIntoAll(ctx context.Context) {
	handle := t.Report.Start("look into the workload clusters")
	defer handle.Done()
	for _, cluster := range t.clusters {
		t.inside = append(t.inside, &leaving.Inside{Cluster: cluster})
	}
	var looked atomic.Int32
	tell := leaving.OneByOne(handle.Detail)
	_ = kube.Each(leaving.AtOnce, t.inside, func(in *leaving.Inside) error { // what went wrong is in the answer
		in.Look(ctx, t.manager)
		tell(fmt.Sprintf("%d of %d", looked.Add(1), len(t.inside)))
		return nil
	})
}

func (t *teardown) planned(in *leaving.Inside) TeardownCluster {
	c := TeardownCluster{Name: in.Cluster.FullName(), Machines: len(in.Cluster.Machines), Drained: in.Items}
	if in.Dead != nil && in.Cluster.Deleting {
		c.NotDrained = "it is being deleted, and its API server does not answer any more; what was not drained before stays in the cloud"
		return c
	}
	if unknown := cmp.Or(in.Dead, in.Untold); unknown != nil {
		c.NotDrained = "what Kubernetes made in the cloud from inside of it is not known, and stays there: " +
			plain.Clip(unknown.Error(), leaving.MostText)
		if len(in.Items) > 0 {
			c.NotDrained += "; at least this: " + plain.Clip(drain.Names(in.Items), leaving.MostText)
		}
		c.Drained = nil
		return c
	}
	if t.drains(in) || len(in.Items) == 0 {
		return c
	}
	c.NotDrained = "left in the cloud, because of --skip-drain"
	if !t.opts.SkipDrain {
		c.NotDrained = "left in the cloud, because its cluster is being deleted already"
	}
	c.Drained = slices.Clone(in.Items)
	for i := range c.Drained {
		c.Drained[i].Stays = c.NotDrained
	}
	return c
}

// drains tells whether teardown drains a cluster. A cluster that is already being deleted is not drained, because the machines of its
// controllers are going.
func (t *teardown) drains(in *leaving.Inside) bool {
	return in.Dead == nil && in.Untold == nil && !in.Simulated && !in.Cluster.Deleting && !t.opts.SkipDrain
}

// planSteps returns the plan for people to read.
func (t *teardown) planSteps(clusters []TeardownCluster) []string {
	name := t.opts.Target.Name
	var steps []string
	if t.client != nil {
		steps = append(steps, "Suspend Flux on the management cluster "+name+
			", so that it makes no deleted object again and does not wait for deleted clusters.")
	}
	var drained, deleted []string
	for _, c := range clusters {
		deleted = append(deleted, "Delete the workload cluster "+c.Name+" with "+plain.Count(c.Machines, "machine")+".")
		if c.NotDrained != "" && len(c.Drained) == 0 {
			drained = append(drained, c.Name+": "+c.NotDrained)
		}
		for _, item := range c.Drained[:min(mostItems, len(c.Drained))] {
			what := "Delete the "
			if item.Stays != "" {
				what = "Leave the "
			}
			drained = append(drained, what+plain.Clip(item.String(), leaving.MostText)+" in "+c.Name+".")
		}
		if more := len(c.Drained) - mostItems; more > 0 {
			drained = append(drained, fmt.Sprintf("The same for %d more in %s (-o json has all).", more, c.Name))
		}
	}
	steps = append(append(steps, drained...), deleted...)
	if t.state != host.StateAbsent {
		steps = append(steps, "Delete the management cluster "+name+", unless it is an existing cluster of yours, which stays.")
	}
	if t.rests {
		steps = append(steps, "If the cluster stays, it is no longer a standby: it accepts writes again, and its controllers run.")
	}
	return append(steps, "Forget it on this machine: its state and its kubeconfig entries.")
}

// paused refuses clusters that Cluster API would not delete.
func (t *teardown) paused() error {
	var names, commands []string
	for _, c := range t.clusters {
		if c.Paused {
			names, commands = append(names, c.FullName()), append(commands, "`"+capi.ResumeCommand(c.Key())+"`")
		}
	}
	if len(names) == 0 {
		return nil
	}
	return diag.Errorf("let Cluster API go on first: "+strings.Join(commands, ", ")+"; nothing was changed",
		"Cluster API does not delete what is paused: %s", strings.Join(names, ", "))
}

// parents refuses clusters that manage other clusters, and clusters that may. The clusters that they manage would live on without anybody
// who could change or delete them.
func (t *teardown) parents() error {
	var errs []error
	for _, in := range t.inside {
		name := in.Cluster.FullName()
		if slices.Contains(t.opts.Abandon, name) || slices.Contains(t.opts.Abandon, in.Cluster.Name) {
			continue
		}
		if len(in.Children) > 0 {
			errs = append(errs, diag.Errorf("tear it down first, with its workload clusters (`fleetctl teardown --management "+in.Cluster.Name+
				" --delete-clusters`), or give them up: --abandon "+name+"; nothing was changed",
				"the workload cluster %s is a management cluster itself, and %s would be left without one: %s",
				name, plain.Count(len(in.Children), "cluster"), plain.Clip(strings.Join(in.Children, ", "), leaving.MostText)))
		}
		if in.Untold != nil {
			errs = append(errs, diag.Wrap("look into the workload cluster "+name, in.Untold,
				"its API server answers, but does not say whether the cluster manages clusters, or what it has in its cloud: correct that, or "+
					"--abandon "+name+" deletes it anyway; nothing was changed"))
		}
	}
	return errors.Join(errs...)
}

func (t *teardown) nothingToDrain(context.Context) (string, bool, error) {
	if t.opts.SkipDrain {
		return "--skip-drain", true, nil
	}
	return "there is nothing to drain", !slices.ContainsFunc(t.inside, t.drains), nil
}

// drain deletes the resources that Kubernetes in the workload clusters has made in their clouds, side by side. First it suspends the Flux
// of each cluster, which would make them again. A cluster that cannot be drained does not stop the others.
func (t *teardown) drain(ctx context.Context, detail func(string)) error {
	tell := leaving.OneByOne(detail)
	return kube.Each(leaving.AtOnce, t.inside, func(in *leaving.Inside) error {
		if t.drains(in) {
			in.Undrained = in.Drain(ctx, cmp.Or(t.opts.drainTime, leaving.DrainTimeout), tell)
		}
		return ctx.Err()
	})
}

// undrained returns the clusters that could not be drained. They are not deleted.
func (t *teardown) undrained() (kept map[kube.Key]bool, err error) {
	kept = map[kube.Key]bool{}
	var errs []error
	for _, in := range t.inside {
		if in.Undrained != nil {
			kept[in.Cluster.Key()] = true
			errs = append(errs, in.Undrained)
		}
	}
	return kept, diag.Wrap("drain", errors.Join(errs...),
		"run teardown again to go on; with --skip-drain it deletes what is left without draining it")
}

// leftIn returns the resources that stay in the clouds, and the clusters that could not be asked.
func (t *teardown) leftIn() (left, notAsked []string) {
	for _, c := range t.result.Plan.Clusters {
		if c.NotDrained != "" && len(c.Drained) == 0 {
			notAsked = append(notAsked, c.Name+": "+c.NotDrained)
		}
		for _, item := range c.Drained {
			if item.Stays != "" {
				left = append(left, item.String()+", cluster "+c.Name)
			}
		}
	}
	return left, notAsked
}

// stays adds to the error of a teardown the resources that stay in the clouds so far, because the next run cannot find them.
func (t *teardown) stays(cause error) error {
	left, notAsked := t.leftIn()
	if all := slices.Concat(left, notAsked); len(all) > 0 && len(t.result.DeletedClusters) > 0 {
		return fmt.Errorf("%w; of what is deleted this stays: %s", cause, plain.Clip(strings.Join(all, "; "), 4*leaving.MostText))
	}
	return cause
}

// withRemains adds to the error of a deletion the objects that remain, their names in the cloud, and the finalizers that hold them. It
// removes no finalizer, because each may stand for a cloud resource that still costs money.
func (t *teardown) withRemains(ctx context.Context, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remainsTime)
	defer cancel()
	clusters, err := t.manager.Clusters(ctx)
	if err != nil {
		return cause
	}
	const mostClusters = 10
	var keys []kube.Key
	for _, c := range clusters {
		if c.Deleting && len(keys) < mostClusters {
			keys = append(keys, c.Key())
		}
	}
	remains, err := t.manager.Remains(ctx, keys)
	if len(remains) == 0 {
		return errors.Join(cause, diag.Wrap("list what is left", err, ""))
	}
	lines := make([]string, 0, len(remains))
	for _, r := range remains {
		lines = append(lines, plain.Clip(r.String(), leaving.MostText))
	}
	return fmt.Errorf("%w; still there: %s", cause, plain.Phrases(lines, 20))
}

// remainsTime bounds the last look.
const remainsTime = 30 * time.Second
