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

func newCredentialsCmd(f *factory) *cobra.Command {
	var within, timeout time.Duration
	c := listFormats(&cobra.Command{
		Use:   "credentials",
		Short: "List what the management clusters hold to get into clouds, since when and until when",
		Long: `List what the management clusters of the fleet hold to get into clouds: the secret variables of their providers and those that end, where they
come from, since when and until when, and the identities that clusters may use. Values are never shown; fleetctl does not read them.

The end of a credential is known where Vault leased it, or where it says so itself: a web token, or what AWS's credential_process and Kubernetes'
credential plugins print. "fleetctl init" renews, or gives the providers, what has changed.

Exit codes: 0 nothing ends soon; 3 something does, or has ended, or a management cluster could not be asked.`,
		Example: `  fleetctl credentials
  fleetctl credentials --within 168h
  fleetctl credentials -o json | jq '.managementClusters[].credentials[] | select(.ends)'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if within < 0 {
				return diag.Usage("give a duration such as 24h", "--within %s is negative", within)
			}
			targets, err := f.allTargets()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			report := management.Credentials(ctx, targets, within, time.Now())
			if err := c.Context().Err(); err != nil {
				return err
			}
			if err := f.show(views.Credentials(report, within)); err != nil {
				return err
			}
			if report.Ending > 0 || report.Unread() > 0 {
				return silent()
			}
			return nil
		},
	})
	f.addManagementFilter(c)
	c.Flags().DurationVar(&within, "within", 24*time.Hour, "name what ends within this time")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "give up on what does not answer after this time")
	return c
}

// allTargets are the management clusters of the fleet repo, or the one that --management names; where there is no fleet repo, the one that this machine
// knows.
func (f *factory) allTargets() ([]*management.Target, error) {
	repo, err := f.fleetRepo()
	if f.flags.management != "" || errors.Is(err, fs.ErrNotExist) {
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

// foundTarget is a management cluster of a fleet repo, or why this machine cannot tell where it is.
type foundTarget struct {
	name   string
	target *management.Target
	err    error
}

// targetsOf are the management clusters that a fleet repo declares, in its order.
func (f *factory) targetsOf(repo *fleetrepo.Repo) []foundTarget {
	names := repo.ManagementClusterNames()
	all := make([]foundTarget, len(names))
	for i, name := range names {
		all[i].name = name
		all[i].target, all[i].err = management.FindDeclared(f.store(), name, repo.Dir)
	}
	return all
}
