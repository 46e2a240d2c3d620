package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/adopt"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// adoptOptions are the flags of adopt.
type adoptOptions struct {
	adopt.Options
	dryRun bool
}

func newAdoptCmd(f *factory) *cobra.Command {
	o := &adoptOptions{}
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Look at a Flux repo with Cluster API objects in it, and write the fleet.yaml for it",
		Long: `Look at a repo that was there before fleetctl: Flux follows it, and it holds objects of Cluster API. The command says what it understands, and
writes the smallest fleet.yaml with which validate, render, diff, status and the lists work. It changes no other file, no layout and no cluster. Clusters that
the repo holds as manifests stay manifests.

A management cluster is found by its Flux: the first folder that Flux applies is the path of the management cluster in fleet.yaml. A repo does not say how
the management cluster is reached: give its context with --context, here once for all, or to each command that reads the cluster.

Exit codes: 0 fleet.yaml is written, or would be; 3 the repo holds nothing of Cluster API.`,
		Example: `  fleetctl adopt --dry-run
  fleetctl adopt --context prod-management
  fleetctl validate`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runAdopt),
	}
	fs := c.Flags()
	fs.StringVar(&o.Name, "name", "", "name of the fleet (default: that of the repo's folder)")
	fs.StringVar(&o.Context, "context", "", "context of the management cluster, for fleet.yaml")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig that has it, relative to fleet.yaml (default: the one that kubectl would use)")
	fs.BoolVar(&o.dryRun, "dry-run", false, "write nothing")
	return c
}

func (o *adoptOptions) complete(f *factory, _ ...string) (err error) {
	if o.Kubeconfig != "" && o.Context == "" {
		return diag.Usage("name the context in it with --context", "--kubeconfig says nothing about which cluster it is")
	}
	o.CacheDir = f.cacheDir()
	o.Dir, err = f.repoDir()
	return err
}

func runAdopt(ctx context.Context, f *factory, o *adoptOptions) error {
	report, err := adopt.Look(ctx, o.Options)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := report.Write(); err != nil {
			return err
		}
	}
	return f.show(views.Adopted(report))
}
