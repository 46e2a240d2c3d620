package cmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/masters"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// masterFlags are those by which bootstrap makes a management cluster that stands alone.
type masterFlags struct {
	cluster, forge string
	pr, keep       bool
}

func (o *masterFlags) add(f *factory, c *cobra.Command) {
	fs := c.Flags()
	fs.Lookup("environment").Usage = "first environment of a new fleet repo; in a fleet whose management clusters have parents: the one whose management cluster is to stand alone"
	fs.StringVar(&o.cluster, "cluster", "", "management cluster with a parent that is to stand alone")
	fs.BoolVar(&o.pr, "pr", false, "with --cluster or --environment: open a pull request that says what was handed over, instead of a push; run it again when that is merged")
	fs.StringVar(&o.forge, "forge", "", "what the remote runs on, for --pr: "+v1alpha1.ForgeNames(" or ")+" (default: spec.git.forge, or by the host's name)")
	fs.BoolVar(&o.keep, "keep-parent", false, "with --cluster or --environment: leave the parent, also where it has nothing left to do")
	completeFlag(c, "forge", completeForges)
	completeFlag(c, "cluster", f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.MasterNames() }))
}

// find is the management cluster that is to stand alone; nil where none is asked for: --environment has another meaning in a new fleet, and where somebody
// names a management cluster or one to pivot to.
func (o *masterFlags) find(f *factory, c *cobra.Command, b lifecycle.BootstrapOptions) (*fleetrepo.Master, error) {
	if o.cluster != "" && (c.Flags().Changed("environment") || b.Cluster != "" || b.PivotTo != "") {
		return nil, diag.Usage("leave the others out", "--cluster says it all: --environment, --management and --pivot-to do not go with it")
	}
	asked := c.Flags().Changed("environment") && b.Cluster == "" && b.PivotTo == ""
	if o.cluster != "" || asked {
		repo, err := f.fleetRepo()
		if err == nil && (o.cluster != "" || len(repo.MasterNames()) > 0) {
			environment := ""
			if asked {
				environment = b.Environment
			}
			return repo.Master(o.cluster, environment)
		}
		if o.cluster != "" {
			return nil, err
		}
	}
	if o.pr || o.keep || o.forge != "" {
		return nil, diag.Usage("add --cluster NAME, or --environment NAME", "--pr, --forge and --keep-parent are for a management cluster that is to stand alone")
	}
	return nil, nil //nolint:nilnil // nobody asks for one
}

func runMaster(c *cobra.Command, f *factory, deps management.Deps, o masterFlags, b lifecycle.BootstrapOptions, master *fleetrepo.Master) error {
	result, err := masters.Bootstrap(c.Context(), deps, masters.Options{
		BootstrapOptions: b, Master: master, KeepParent: o.keep,
		Change: change.Options{PullRequest: o.pr, Forge: v1alpha1.ForgeType(o.forge), NoVerify: b.NoVerify, CacheDir: f.cacheDir()},
	})
	if result == nil {
		return err
	}
	f.closeReporter()
	result.Steps = f.report().Events()
	return errors.Join(err, f.show(views.Master(result)))
}
