package reclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DeleteOptions say what `fleetctl orphans --delete` deletes.
type DeleteOptions struct {
	// Cluster whose resources go.
	Cluster string
	// Gone are management clusters that no longer exist: that they do not answer does not protect the cluster.
	Gone []string
	// Git reaches the remote of the fleet repo.
	Git change.Credentials
	// DryRun ends before anything is deleted.
	DryRun bool
	// Confirm is shown what is about to be deleted; an error ends it.
	Confirm func(*orphans.Deletion) error
	// Timeout bounds the deletion; looking has that of Options.
	Timeout time.Duration
}

// Deleted is the result of Delete.
type Deleted struct {
	FormatVersion string `json:"formatVersion"`
	Cluster       string `json:"cluster"`
	// Regions are the only regions that were asked; empty if all regions of the account were asked.
	Regions []string `json:"regions"`
	DryRun  bool     `json:"dryRun"`
	// NotListed are the providers whose clouds fleetctl cannot ask. They may have something of the cluster, too.
	NotListed []string `json:"cloudsNotListed"`
	// AccountsNotAsked may have something of it as well.
	AccountsNotAsked []orphans.AccountNotAsked `json:"accountsNotAsked"`
	// Planned is what was to be deleted; Deleted, what is gone.
	Planned []orphans.Resource `json:"planned"`
	Deleted []orphans.Resource `json:"deleted"`
	// Left is what the cloud still has of the cluster, and why; of a dry run, what stays.
	Left []orphans.Kept `json:"left"`
}

// Delete deletes the cloud resources of one cluster that no management cluster owns. It lists the resources, asks for confirmation, and
// lists them again. Before each kind of resource it asks the management clusters once more, because one of them may have taken the cluster
// over meanwhile. At the end it lists the resources that are left.
func Delete(ctx context.Context, deps management.Deps, o Options, d DeleteOptions) (*Deleted, error) {
	newest, cancelNewest := steps.WithTimeout(ctx, o.Timeout)
	defer cancelNewest()
	if err := checkNewest(newest, o.Repo, d.Git); err != nil {
		return nil, steps.TimedOut(newest, err)
	}
	for _, t := range o.Targets {
		if err := t.CheckCopy(); err != nil { // a copy does not declare what was added to the original since
			return nil, err
		}
	}
	report, err := Look(ctx, deps, o)
	if err != nil {
		return nil, err
	}
	agreed, err := report.Deletion(d.Cluster, d.Gone)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(report.Clusters, func(c orphans.Cluster) bool { return c.Name == d.Cluster }) {
		return nil, unknownOrphan(report, o, d.Cluster)
	}
	result := &Deleted{
		FormatVersion: "1", Cluster: d.Cluster, Regions: append([]string{}, o.Regions...), DryRun: d.DryRun, Planned: agreed.Resources,
		Deleted: []orphans.Resource{}, Left: agreed.Kept, NotListed: report.NotListed, AccountsNotAsked: report.AccountsNotAsked,
	}
	if d.DryRun || len(agreed.Resources) == 0 {
		return result, nil
	}
	if err := d.Confirm(agreed); err != nil {
		return nil, err
	}
	ctx, cancel := steps.WithTimeout(ctx, d.Timeout)
	defer cancel()
	if report, err = Look(ctx, deps, o); err != nil {
		return nil, err
	}
	now, err := report.Deletion(d.Cluster, d.Gone)
	if err != nil {
		return nil, err
	}
	now.Only(agreed)
	result.Deleted, err = now.Delete(ctx, orphans.Watch{
		Before: func(ctx context.Context) error { return stillNobodys(ctx, report.Fleet, o, d) },
		Stage: func(what string) func(error) {
			step := deps.Report.Start(what)
			return func(err error) {
				if err != nil {
					step.Fail(err)
					return
				}
				step.Done()
			}
		},
	})
	if err != nil {
		return nil, diag.Wrap(fmt.Sprintf("delete the rest of the cluster %s", d.Cluster), steps.TimedOut(ctx, err),
			fmt.Sprintf("%d of %s %s gone; correct this, and run the same command again", len(result.Deleted),
				plain.Count(len(now.Resources), "resource"), plain.Are(len(now.Resources))))
	}
	return result, result.lookLast(ctx, deps, o, d)
}

// unknownOrphan names the clusters that there is something of: a name that nothing has is a mistyped one, and no success.
func unknownOrphan(report *orphans.Report, o Options, name string) error {
	var found []string
	for _, c := range report.Clusters {
		found = append(found, plain.Line(c.Name)) // a tag has it, and any user of the account sets tags
	}
	hint, where := "there is something of: "+plain.Names(slices.Compact(found), orphans.MostNamed), ""
	if len(found) == 0 {
		hint = "`fleetctl orphans` lists what there is"
	}
	if len(o.Regions) > 0 {
		where = " in " + strings.Join(o.Regions, ", ")
	}
	return diag.Usage(hint, "there is nothing of a cluster %s%s", name, where)
}

// stillNobodys fails when a management cluster has the cluster now, or does not answer any more.
func stillNobodys(ctx context.Context, fleet string, o Options, d DeleteOptions) error {
	names, unasked := living(ctx, fleet, o.Targets)
	if owner, lives := names[d.Cluster]; lives {
		return fmt.Errorf("the management cluster %s has the cluster %s now", owner, d.Cluster)
	}
	for _, u := range unasked {
		if err := u.MayOwn(d.Cluster, d.Gone); err != nil {
			return err
		}
	}
	return nil
}

// lookLast says what the clouds have of the cluster after all.
func (r *Deleted) lookLast(ctx context.Context, deps management.Deps, o Options, d DeleteOptions) error {
	report, err := Look(ctx, deps, o)
	if err != nil {
		return err
	}
	left, err := report.Deletion(d.Cluster, d.Gone)
	if err != nil {
		return diag.Wrap("look what is left", err, diag.Hint(err))
	}
	r.Left = left.Kept
	for _, resource := range left.Resources {
		why := "it came while the others were deleted: run the same command again"
		if slices.ContainsFunc(r.Deleted, func(one orphans.Resource) bool { return one.ID == resource.ID && one.Region == resource.Region }) {
			why = "the cloud has deleted it, and still shows it: look again later"
		}
		r.Left = append(r.Left, orphans.Kept{Resource: resource, Why: why})
	}
	return nil
}
