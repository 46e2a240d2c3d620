package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/views"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// whyOptions are the flags of why.
type whyOptions struct {
	named
	timeout time.Duration
}

func runWhy(ctx context.Context, f *factory, o *whyOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	from, err := f.whySources(ctx, o.name)
	if err != nil {
		return err
	}
	report, err := why.Collect(ctx, from)
	if err != nil {
		return err
	}
	err = f.show(views.Why(report))
	if err == nil && !report.Ready {
		return silent()
	}
	return err
}

func newWhyCmd(f *factory) *cobra.Command {
	o := &whyOptions{}
	c := &cobra.Command{
		Use:   "why CLUSTER",
		Short: "Say why a workload cluster differs from Git: the first cause, and its remedy",
		Long: `Say why a workload cluster, NAME or NAMESPACE/NAME, is not as Git has it. It follows the way from the commit through
Flux's source, Kustomizations and HelmRelease to the Cluster and to its provider's own objects, down to the words of
the cloud. The first cause is the trouble that no other trouble explains. It stands on top, with its remedy if one is
known.

Exit codes: 0 the cluster is as it should be; 3 it is not.`,
		Example: `  fleetctl why shop
  fleetctl why prod/shop -o json | jq .causes`,
		Args:              cobra.ExactArgs(1),
		RunE:              running(f, o, runWhy),
		ValidArgsFunction: f.completeWorkloadClusters,
	}
	f.addManagement(c)
	doesWithout(c, findsOne)
	f.addReach(c)
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit for each answer")
	return c
}

// whySources finds the management cluster of a workload cluster, and the cluster's declaration in the fleet repo.
func (f *factory) whySources(ctx context.Context, name string) (why.Sources, error) {
	w, err := f.findWorkload(name)
	from := why.Sources{Cluster: w.name}
	if err != nil {
		return from, err
	}
	target, err := w.target(f, management.FindDeclared)
	if err != nil {
		return from, err
	}
	from.Management, from.Declared = target.Name, f.declaration(w)
	if target.Record != nil {
		from.Repo, from.FleetID = target.Record.Repo, target.Record.FleetID
	}
	from.Client, err = target.Client(ctx)
	return from, err
}

// declaration is the place of a cluster of a chart in the fleet repo; nil for any other cluster.
func (f *factory) declaration(w workload) *why.Declared {
	repo, err := f.fleetRepo()
	if err != nil || w.declared == nil || w.declared.Manifests {
		return nil
	}
	by := repo.LayoutOf(*w.declared).ClustersName(w.declared.Environment)
	return &why.Declared{Key: w.key(), File: w.declared.File, Environment: w.declared.Environment, AppliedBy: by}
}
