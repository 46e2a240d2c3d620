package cmd

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// credentialsOptions are the flags of credentials.
type credentialsOptions struct{ within, timeout time.Duration }

func newCredentialsCmd(f *factory) *cobra.Command {
	o := &credentialsOptions{}
	c := listFormats(&cobra.Command{
		Use:   "credentials",
		Short: "List the cloud credentials of the management clusters, with their age and expiry",
		Long: `List the cloud credentials of the fleet's management clusters: the secret variables of their providers, credentials that
expire, and the identities that clusters may use. The list says where each credential comes from, when it was created and when it expires.
fleetctl does not read the values, and never shows them.

The expiry of a credential is known where Vault leased it, or where the credential itself names it: a web token, or
the output of AWS's credential_process and of Kubernetes' credential plugins. "fleetctl init" renews such credentials
and gives changed ones to the providers.

Exit codes: 0 nothing expires soon; 3 something does, or has expired, or a management cluster could not be asked.`,
		Example: `  fleetctl credentials
  fleetctl credentials --within 168h
  fleetctl credentials -o json | jq '.managementClusters[].credentials[] | select(.ends)'`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runCredentials),
	})
	f.addManagementFilter(c)
	f.addReach(c)
	c.Flags().DurationVar(&o.within, "within", 24*time.Hour, "report credentials that expire within this time")
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit for each answer")
	return c
}

func (o *credentialsOptions) complete(*factory, ...string) error {
	if o.within < 0 {
		return diag.Usage("give a duration such as 24h", "--within %s is negative", o.within)
	}
	return nil
}

func runCredentials(ctx context.Context, f *factory, o *credentialsOptions) error {
	targets, err := f.allTargets()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	report := management.Credentials(bounded, targets, o.within, time.Now())
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, c := range report.Clusters {
		report.Clusters[i].Hint = f.adviseAbout(c.Name, c.Hint)
	}
	if err := f.show(views.Credentials(report, o.within)); err != nil {
		return err
	}
	if report.Ending > 0 || report.Unread() > 0 {
		return silent()
	}
	return nil
}

// allTargets are the management clusters of the fleet repo, or the one that --management, --kubeconfig or --context names. Without a fleet
// repo it is the one that this machine remembers.
func (f *factory) allTargets() ([]*management.Target, error) {
	repo, err := f.fleetRepo()
	if f.flags.nameOne() || errors.Is(err, fs.ErrNotExist) {
		target, err := f.declaredTarget()
		if err != nil {
			return nil, err
		}
		return []*management.Target{target}, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]*management.Target, 0, len(repo.Fleet.Spec.ManagementClusters))
	for _, t := range f.targetsOf(repo) {
		if t.err != nil {
			return nil, t.err
		}
		all = append(all, t.target)
	}
	return all, nil
}

// foundTarget is a management cluster of a fleet repo, or the reason why this machine does not know how to reach it.
type foundTarget struct {
	name   string
	target *management.Target
	err    error
}

// targetsOf are the management clusters that a fleet repo declares, in its order.
func (f *factory) targetsOf(repo *fleetrepo.Repo) []foundTarget {
	return f.targetsNamed(repo, repo.ManagementClusterNames())
}

func (f *factory) targetsNamed(repo *fleetrepo.Repo, names []string) []foundTarget {
	all := make([]foundTarget, len(names))
	for i, name := range names {
		all[i].name = name
		all[i].target, all[i].err = management.FindDeclared(f.store(), name, repo.Dir)
	}
	return all
}
