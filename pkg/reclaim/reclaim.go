// Package reclaim asks the clouds of a fleet for the resources of clusters that no management cluster owns any more, and deletes these
// resources if the user agrees. pkg/orphans knows which evidence proves that a resource has no owner.
package reclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/census"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// Options say where `fleetctl orphans` looks.
type Options struct {
	Repo *fleetrepo.Repo
	// Dir is the folder of the fleet repo.
	Dir string
	// Targets are all management clusters of the fleet.
	Targets []*management.Target
	// Regions of AWS, and addresses of vCenters; empty for all.
	Regions []string
	// RunCommands runs the commands of fleet.yaml that print credentials.
	RunCommands bool
	// Vault reads the credentials that come from Vault. The caller gives back at the end what was leased.
	Vault   *fromvault.Reader
	Timeout time.Duration
}

// askTimeout bounds how long a management cluster may take to say which clusters it has.
const askTimeout = 30 * time.Second

// Look lists the resources in the fleet's clouds, and the clusters that the management clusters own. What did not answer in time is in the
// report, as what answered with an error is.
func Look(ctx context.Context, deps management.Deps, o Options) (*orphans.Report, error) {
	asked := ctx
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	identity, err := fleetrepo.ReadIdentity(o.Dir)
	if err != nil {
		return nil, err
	}
	clusters, unread, err := census.Clusters(ctx, o.Repo)
	if err != nil {
		return nil, err
	}
	look := orphans.Options{Fleet: identity}
	for _, finding := range unread {
		look.Unread = append(look.Unread, finding.String())
	}
	for _, c := range clusters {
		look.Declared = append(look.Declared, c.Name)
	}
	if !o.hasAskable() { // no management cluster is waited for in vain
		return nil, noneToAsk(o)
	}
	look.Living, look.Unasked = living(ctx, identity, o.Targets)
	o.open(ctx, deps, &look) // which reads keys on management clusters that have proved to be of this fleet
	if len(look.Accounts)+len(look.NotOpened) == 0 {
		return nil, noneToAsk(o)
	}
	look.NotListed = notListed(o.Repo.Fleet.Spec.ManagementClusters, o.Regions)
	report := orphans.Find(ctx, look)
	if !report.Answered() && asked.Err() == nil { // which keeps everything from being deleted, too
		return report, nil
	}
	return report, steps.TimedOut(ctx, ctx.Err())
}

// living asks each management cluster of the fleet which clusters it has, by their names.
func living(ctx context.Context, fleet string, targets []*management.Target) (map[string]string, []orphans.Unasked) {
	type answer struct {
		clusters []capi.Cluster
		err      error
	}
	answers := make([]answer, len(targets))
	var group errgroup.Group
	group.SetLimit(4)
	for i, t := range targets {
		group.Go(func() error {
			answers[i].clusters, answers[i].err = clustersOf(ctx, fleet, t)
			return nil // the errors are in the answers
		})
	}
	_ = group.Wait()
	names, unasked := map[string]string{}, []orphans.Unasked{}
	for i, a := range answers {
		if a.err != nil {
			_, untold := errors.AsType[*untoldError](a.err)
			unasked = append(unasked, orphans.Unasked{Name: targets[i].Name, Error: a.err.Error(), Hint: diag.Hint(a.err), Answers: untold})
		}
		for _, c := range a.clusters {
			names[c.Name] = targets[i].Name
		}
	}
	return names, unasked
}

// Left are the cloud resources that are left when a management cluster is gone.
type Left struct {
	// Clusters are the clusters with resources in the clouds. Resources are all these resources, a line each.
	Clusters, Resources []string
	// NotAsked is what could have told of more, and did not, a line each.
	NotAsked []string
}

// LeftBy lists the resources in the clouds after the management cluster called gone was torn down. For a management cluster without a cloud
// that can be asked, the list has no resources.
func LeftBy(ctx context.Context, deps management.Deps, gone string, o Options) Left {
	o.Targets = slices.DeleteFunc(slices.Clone(o.Targets), func(t *management.Target) bool { return t.Name == gone })
	i := slices.IndexFunc(o.Repo.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool { return m.Name == gone })
	if i < 0 {
		return Left{}
	}
	of := o.Repo.Fleet.Spec.ManagementClusters[i]
	unlisted := cannotList(notListed([]v1alpha1.ManagementCluster{of}, nil))
	if !slices.ContainsFunc(of.Providers, isAskable) {
		return Left{NotAsked: unlisted}
	}
	report, err := Look(ctx, deps, o)
	if err != nil {
		return Left{NotAsked: append(unlisted, "the clouds: "+err.Error())}
	}
	var left Left
	for _, c := range report.Clusters {
		if !slices.Contains(left.Clusters, c.Name) { // several accounts may have something of it
			left.Clusters = append(left.Clusters, c.Name)
		}
		for _, r := range c.Resources {
			left.Resources = append(left.Resources, fmt.Sprintf("%s %s: %s %s of cluster %s", c.Cloud, r.Region, r.Kind, r.ID, c.Name))
		}
	}
	for _, c := range report.Clouds {
		for _, p := range c.Problems {
			left.NotAsked = append(left.NotAsked, c.Where(p.Region)+": "+p.Text)
		}
	}
	for _, a := range report.AccountsNotAsked {
		left.NotAsked = append(left.NotAsked, a.String())
	}
	left.NotAsked = append(left.NotAsked, unlisted...)
	for _, u := range report.Unasked {
		left.NotAsked = append(left.NotAsked, "management cluster "+u.Name+": "+u.Error)
	}
	return left
}

// cannotList returns a line for each provider whose cloud cannot be listed.
func cannotList(providers []string) []string {
	var lines []string
	for _, p := range providers {
		lines = append(lines, p+": fleetctl cannot list the resources of this cloud; look there by hand")
	}
	return lines
}
