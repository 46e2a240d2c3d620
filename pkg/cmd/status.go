package cmd

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// statusOptions are the flags of status.
type statusOptions struct {
	// clusters has at most one workload cluster, which is shown in depth. Without one, the management cluster is shown.
	clusters          []string
	all, watch        bool
	interval, timeout time.Duration
}

func (o *statusOptions) complete(f *factory, args ...string) error {
	if o.all {
		if len(args)+len(f.typedAmong([]string{"watch", "management", "kubeconfig", "context"})) > 0 {
			return diag.Usage("leave the rest out", "--all shows every management cluster of the fleet, and nothing else")
		}
		o.watch, f.flags.management, f.flags.kubeconfig, f.flags.context = false, "", "", "" // values from outside are for other commands
	}
	if o.clusters = args; len(args) > 0 && o.watch {
		return diag.Usage("leave one of them out", "--watch shows all clusters, and %s was named", args[0])
	}
	if o.watch && o.interval <= 0 {
		return diag.Usage("give a duration such as 2s", "--interval %s is not positive", o.interval)
	}
	return nil
}

func runStatus(ctx context.Context, f *factory, o *statusOptions) error {
	switch {
	case o.all:
		return showAll(ctx, f, o.timeout)
	case len(o.clusters) > 0:
		return showDepth(ctx, f, o.clusters[0], o.timeout)
	}
	target, err := f.declaredTarget()
	if err != nil {
		return err
	}
	if o.watch {
		return watchStatus(ctx, f, target, o.timeout, o.interval)
	}
	return showStatus(ctx, f, target, o.timeout)
}

func newStatusCmd(f *factory) *cobra.Command {
	o := &statusOptions{}
	c := listFormats(&cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show the management cluster, its providers, Flux and the workload clusters",
		Long: `Show one tree: the management cluster, the providers with their versions and health, the revisions that Flux follows and has
applied, and the workload clusters with their machines. Below the tree, a table lists everything that is not healthy, one line for each
cause.

A workload cluster that has changed hands has a record of its owner. status asks the workload clusters for it, side by side and for a few
seconds at most. If a record names another management cluster of the fleet than the one that acts on the cluster, status says TWO OWNERS.
Clusters that do not answer, or that there is no time to ask, are counted, and are no problem. --watch asks them once a minute.

With the name of a workload cluster, status shows this cluster in detail: the Cluster, its provider's objects and all objects below them,
the conditions that are not as they should be, and the last events. "fleetctl why CLUSTER" looks for the first cause.

-o wide also shows API servers, nodes and whole revisions, and of one cluster all conditions. -o name prints the names alone: of the
workload clusters, of one cluster's objects, or with --all of the management clusters.

With --all, status looks at every management cluster and standby of the fleet at the same time. Each gets one line,
even if it does not answer. A warning names every workload cluster that two management clusters act on.

Exit codes: 0 everything is Ready; 3 something is not.`,
		Example: `  fleetctl status
  fleetctl status --watch
  fleetctl status --all
  fleetctl status shop
  fleetctl status -o json | jq .problems`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeWorkloadClusters,
		RunE:              running(f, o, runStatus),
	})
	f.addManagement(c)
	doesWithout(c, findsOneOf)
	f.addReach(c)
	c.Flags().BoolVar(&o.all, "all", false, "every management cluster of the fleet, side by side")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "show the status again after each change, until interrupted")
	c.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "how often --watch looks")
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit for each answer")
	return c
}

// collectStatus collects one report. answers is that of a watch; else it is nil.
func (f *factory) collectStatus(
	ctx context.Context, target *management.Target, timeout time.Duration, answers *status.Answers,
) *status.Report {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	from := management.StatusSources(ctx, target)
	from.Place, from.Answers = f.placeOf(target), answers
	return status.Collect(ctx, from)
}

func showStatus(ctx context.Context, f *factory, target *management.Target, timeout time.Duration) error {
	report := f.collectStatus(ctx, target, timeout, nil)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := printStatus(f, report); err != nil {
		return err
	}
	if !report.Ready {
		return silent()
	}
	return nil
}

// showAll is status of every management cluster of the fleet.
func showAll(ctx context.Context, f *factory, timeout time.Duration) error {
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	targets := f.targetsNamed(repo, slices.Concat(repo.ManagementClusterNames(), repo.StandbyNames()))
	reports := make([]*status.Report, len(targets))
	var group sync.WaitGroup
	for i, t := range targets {
		group.Go(func() {
			if t.err != nil {
				reports[i] = status.Collect(ctx, status.Sources{Cluster: status.Cluster{Name: t.name, State: "unknown"}, Unreachable: t.err})
				return
			}
			if hasEnded(ctx, repo, t.target) {
				reports[i] = status.Ended(t.name)
				return
			}
			reports[i] = f.collectStatus(ctx, t.target, timeout, nil)
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range reports {
		for i, problem := range r.Problems {
			r.Problems[i].Hint = f.adviseAbout(r.Cluster.Name, problem.Hint)
		}
	}
	all := status.Join(reports)
	if err := f.show(views.StatusAll(all)); err != nil {
		return err
	}
	if !all.Ready {
		return silent()
	}
	return nil
}

func printStatus(f *factory, report *status.Report) error {
	return f.show(views.Status(report))
}

// showDepth is status of one workload cluster.
func showDepth(ctx context.Context, f *factory, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	from, err := f.whySources(ctx, name)
	if err != nil {
		return err
	}
	depth, err := why.CollectDepth(ctx, from)
	if err != nil {
		return err
	}
	err = f.show(views.Depth(depth))
	if err == nil && !depth.Ready {
		return silent()
	}
	return err
}

// watchStatus prints a report whenever it differs from the last one. When interrupted, it ends with the exit code of the last report.
func watchStatus(ctx context.Context, f *factory, target *management.Target, timeout, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last string
	ready, answers := true, &status.Answers{}
	for {
		report := f.collectStatus(ctx, target, timeout, answers)
		if ctx.Err() == nil {
			ready = report.Ready
			now, err := fingerprint(report)
			if err != nil {
				return err
			}
			if now != last {
				last = now
				if f.format == ui.Human {
					ui.Fprintf(f.streams.Out, "\n%s\n", report.Time.Local().Format(time.DateTime))
				}
				if err := printStatus(f, report); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			if !ready {
				return silent()
			}
			return nil
		case <-tick.C:
		}
	}
}

// fingerprint encodes a report without the parts that always change.
func fingerprint(r *status.Report) (string, error) {
	still := *r
	still.Time, still.OwnRecords = time.Time{}, status.OwnRecords{} // which clusters answer in time differs each time
	raw, err := json.Marshal(still)
	return string(raw), err
}
