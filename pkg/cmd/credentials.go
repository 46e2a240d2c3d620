package cmd

import (
	"context"
	"errors"
	"io/fs"
	"slices"
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

An ephemeral parent that has handed over what it had, and has ended, is not asked.

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
	found, err := f.allFound()
	if err != nil {
		return err
	}
	report := credentialsOf(ctx, withoutEnded(ctx, f, found), o)
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

// withoutEnded leaves out the management clusters that have ended, which hold nothing any more.
func withoutEnded(ctx context.Context, f *factory, found []foundTarget) []foundTarget {
	repo, err := f.fleetRepo()
	if err != nil || f.flags.nameOne() {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(t foundTarget) bool { return t.err == nil && hasEnded(ctx, repo, t.target) })
}

// hasEnded tells whether the fleet repo says that a management cluster was torn down after it had handed over what it had, and this machine
// has nothing of it. A repo that cannot be read says nothing.
func hasEnded(ctx context.Context, repo *fleetrepo.Repo, target *management.Target) bool {
	ended, err := repo.HasEnded(target.Name)
	return err == nil && ended && target.NotHere(ctx)
}

// credentialsOf asks the management clusters that this machine knows how to reach. The others are in the report, with the reason.
func credentialsOf(ctx context.Context, found []foundTarget, o *credentialsOptions) *management.CredentialsReport {
	var targets []*management.Target
	for _, t := range found {
		if t.err == nil {
			targets = append(targets, t.target)
		}
	}
	report := management.Credentials(ctx, targets, o.within, o.timeout, time.Now())
	for i, t := range found {
		if t.err != nil {
			report.Clusters = slices.Insert(report.Clusters, i, management.ClusterCredentials{
				Name: t.name, Error: t.err.Error(), Hint: diag.Hint(t.err), Credentials: []management.Credential{},
			})
		}
	}
	return report
}

// allFound are the management clusters of the fleet repo, or the one that --management, --kubeconfig or --context names. Without a fleet
// repo it is the one that this machine remembers.
func (f *factory) allFound() ([]foundTarget, error) {
	repo, err := f.fleetRepo()
	if f.flags.nameOne() || errors.Is(err, fs.ErrNotExist) {
		target, err := f.declaredTarget()
		if err != nil {
			return nil, err
		}
		return []foundTarget{{name: target.Name, target: target}}, nil
	}
	if err != nil {
		return nil, err
	}
	return f.targetsOf(repo), nil
}

// allTargets are allFound, if this machine knows how to reach each of them.
func (f *factory) allTargets() ([]*management.Target, error) {
	found, err := f.allFound()
	if err != nil {
		return nil, err
	}
	all := make([]*management.Target, 0, len(found))
	for _, t := range found {
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
