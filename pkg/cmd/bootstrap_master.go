package cmd

import (
	"context"
	"errors"
	"path/filepath"

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

// masterFlags are the flags with which bootstrap makes a management cluster that stands alone.
type masterFlags struct {
	forge           string
	alone, pr, keep bool
	// own says how to reach the management cluster's own repository. The files have the repository's tokens.
	own                                masters.OwnOptions
	ownRepo, ownTokenFile, ownFluxFile string
	// environment tells whether --environment was given.
	environment func() bool
	// found is the management cluster that is to stand alone; nil if the flags ask for none.
	found *fleetrepo.Master
}

func (o *masterFlags) add(c *cobra.Command) {
	fs := c.Flags()
	o.environment = func() bool { return fs.Changed("environment") }
	fs.Lookup("environment").Usage =
		"first environment of a new fleet repo (default: dev); if the fleet's management clusters have parents: the environment whose " +
			"management cluster is to stand alone"
	fs.BoolVar(&o.alone, "stand-alone", false,
		"make the management cluster of --management with its parent, and let it manage itself afterwards")
	fs.BoolVar(&o.pr, "pr", false,
		"with --stand-alone or --environment: record the hand-over by a pull request instead of a push; run the command again when it is merged")
	fs.StringVar(&o.forge, "forge", "", "forge of the remote, for --pr and --create-repo: "+v1alpha1.ForgeNames(" or ")+
		" (default: spec.git.forge, or by the host's name)")
	fs.BoolVar(&o.keep, "keep-parent", false, "with --stand-alone or --environment: keep the parent, even if it has no workload cluster left")
	fs.StringVar(&o.ownRepo, "own-repo", "",
		"folder for a clone of the new management cluster's own repository (default: one in the state folder)")
	fs.BoolVar(&o.own.Create, "own-create-repo", false,
		"make the new management cluster's own repository, private and empty, if it does not exist; its token needs the right to do so")
	fs.StringVar(&o.ownTokenFile, "own-git-token-file", "",
		"file with the token of the new management cluster's own repository (default: the environment variable "+ownTokenVariable+")")
	fs.StringVar(&o.ownFluxFile, "own-flux-token-file", "",
		"file with a token that may only read the new management cluster's own repository, for Flux (default: "+
			"the environment variable "+ownFluxTokenVariable+")")
	fs.StringVar(&o.own.Git.SSHKeyFile, "own-ssh-key-file", "",
		"private key for the new management cluster's own repository (default: the agent)")
	completeFlag(c, "forge", completeForges)
}

// complete finds the management cluster that is to stand alone, if the flags ask for one. --environment alone does not ask for one in a
// new fleet, or together with --management or --pivot-to.
func (o *masterFlags) complete(f *factory, b lifecycle.BootstrapOptions) error {
	if o.alone && b.PivotTo != "" {
		return diag.Usage("leave one of them out",
			"--pivot-to hands over all clusters of a management cluster, --stand-alone only those of the management cluster that it makes")
	}
	if o.alone || o.environment() && b.Cluster == "" && b.PivotTo == "" {
		repo, err := f.fleetRepo()
		if err != nil && o.alone {
			return err
		}
		if err == nil && (o.alone || len(repo.MasterNames()) > 0) {
			environment := ""
			if o.environment() {
				environment = b.Environment
			}
			if o.found, err = repo.Master(b.Cluster, environment); err != nil {
				return err
			}
			return o.completeOwn()
		}
	}
	if o.pr || o.keep || o.givesOwn() {
		return diag.Usage("add --environment NAME, or --management NAME --stand-alone",
			"--pr, --keep-parent and --own-… are for a management cluster that is to stand alone")
	}
	return nil
}

// givesOwn tells whether one of the flags --own-… was given.
func (o *masterFlags) givesOwn() bool {
	return o.ownRepo != "" || o.own.Create || o.ownTokenFile != "" || o.ownFluxFile != "" || o.own.Git.SSHKeyFile != ""
}

// completeOwn completes the flags --own-….
func (o *masterFlags) completeOwn() (err error) {
	if o.found.Repository == nil {
		if o.givesOwn() {
			return diag.Usage("declare one: repository in fleet.yaml",
				"management cluster %s has no repository of its own: the flags --own-… need one", o.found.Name)
		}
		return nil
	}
	if o.own.Git.Token, err = readTokenFrom(o.ownTokenFile, "own-git-token-file", ownTokenVariable); err != nil {
		return err
	}
	if o.own.FluxToken, err = readTokenFrom(o.ownFluxFile, "own-flux-token-file", ownFluxTokenVariable); err != nil {
		return err
	}
	if o.ownRepo != "" {
		o.own.Dir, err = filepath.Abs(o.ownRepo)
	}
	return diag.Wrap("find the folder "+o.ownRepo, err, "")
}

func runMaster(ctx context.Context, f *factory, deps management.Deps, o *bootstrapOptions) error {
	result, err := masters.Bootstrap(ctx, deps, masters.Options{
		BootstrapOptions: o.bootstrap, Master: o.master.found, KeepParent: o.master.keep, Own: o.master.own,
		Change: change.Options{
			PullRequest: o.master.pr, Forge: v1alpha1.ForgeType(o.master.forge), NoVerify: o.NoVerify, CacheDir: deps.CacheDir,
		},
	})
	f.closeReporter()
	result.Steps = f.report().Events()
	return errors.Join(err, f.show(views.Master(result)))
}
