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
	dryRun, commit bool
}

func newAdoptCmd(f *factory) *cobra.Command {
	o := &adoptOptions{}
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Look at a Flux repo with Cluster API objects in it, and write the fleet.yaml for it",
		Long: `Write a fleet.yaml for a repo that Flux already follows and that holds Cluster API objects. The command reports what it found
in the repo. The fleet.yaml is the smallest one with which validate, render, diff, status and the lists work. No other file and no cluster
is changed. --commit also commits fleet.yaml. Clusters that the repo holds as manifests stay manifests.

A management cluster is found by its Flux: the first folder that Flux applies becomes the path of the management cluster in fleet.yaml. The
repo does not say how to reach the management cluster: give its context with --context, here once, or to each command that reads the
cluster.

Exit codes: 0 fleet.yaml is written, or would be; 3 the repo holds no Cluster API objects.`,
		Example: `  fleetctl adopt --dry-run
  fleetctl adopt --context prod-management --commit
  fleetctl validate`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runAdopt),
	}
	fs := c.Flags()
	fs.StringVar(&o.Name, "name", "", "name of the fleet (default: the name of the repo's folder)")
	fs.StringVar(&o.Context, "context", "", "context of the management cluster, for fleet.yaml")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"kubeconfig with this context, relative to fleet.yaml (default: the kubeconfig that kubectl would use)")
	fs.BoolVar(&o.dryRun, "dry-run", false, "write nothing")
	fs.BoolVar(&o.commit, "commit", false, "commit fleet.yaml, and no other file")
	return c
}

func (o *adoptOptions) complete(f *factory, _ ...string) (err error) {
	if o.Kubeconfig != "" && o.Context == "" {
		return diag.Usage("name the context with --context", "--kubeconfig says nothing about which cluster it is")
	}
	if o.CacheDir, err = f.cacheDir(); err != nil {
		return err
	}
	o.Dir, err = f.repoDir()
	return err
}

func runAdopt(ctx context.Context, f *factory, o *adoptOptions) error {
	report, err := adopt.Look(ctx, o.Options)
	if err != nil {
		return err
	}
	switch {
	case o.dryRun:
	case o.commit:
		err = report.Commit(ctx)
	default:
		err = report.Write()
	}
	if err != nil {
		return err
	}
	return f.show(views.Adopted(report))
}
