package cmd

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newClusterCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Declare, list and change the workload clusters of the fleet repo",
		Long: `Declare, list and change the workload clusters of the fleet repo. Name a cluster by its name, or by environment/name if
several have the same name.`,
	}
	c.AddCommand(
		newClusterAddCmd(f), newClusterListCmd(f), newClusterShowCmd(f), newClusterScaleCmd(f), newClusterUpgradeCmd(f), newClusterFluxCmd(f),
		newClusterPauseCmd(f), newClusterResumeCmd(f), newClusterRemoveCmd(f), newClusterDrainCmd(f), newClusterKubeconfigCmd(f),
		newClusterDetachCmd(f), newClusterTransferCmd(f),
	)
	return c
}

func newClusterListCmd(f *factory) *cobra.Command {
	o := &clusterListOptions{}
	c := listFormats(&cobra.Command{
		Use:   "list",
		Short: "List the clusters that the fleet repo declares",
		Long: `List the clusters that the fleet repo declares. The command only reads files: the clusters of fleetctl's layout, and Cluster
API objects anywhere that Flux would apply. To see the running clusters, use fleetctl status.

Exit codes: 0 all files could be read; 1 some could not: the list has the others.`,
		Example: `  fleetctl cluster list
  fleetctl cluster list --environment prod -o json | jq -r .clusters[].name`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runClusterList),
	})
	f.addManagementFilter(c)
	c.Flags().StringVar(&o.environment, "environment", "", "only the clusters of this environment")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

func environmentNames(r *fleetrepo.Repo, _ []string) []string { return r.EnvironmentNames() }

// completeFlag registers the completion of a flag that the command has.
func completeFlag(c *cobra.Command, name string, complete cobra.CompletionFunc) {
	_ = c.RegisterFlagCompletionFunc(name, complete) // fails only if the command lacks the flag
}

// clusterListOptions are the flags of cluster list.
type clusterListOptions struct {
	asGiven
	environment string
}

func runClusterList(ctx context.Context, f *factory, o *clusterListOptions) error {
	return f.showClusters(ctx, o.environment, views.Clusters)
}

// showClusters shows the clusters of an environment, or of all environments if it is "", and of --management. view gets them, all clusters
// of the fleet, and the problems in the files of others.
func (f *factory) showClusters(
	ctx context.Context, environment string, view func(some, all []fleetrepo.Cluster, problems diag.Findings) views.View,
) error {
	repo, err := f.anyRepo()
	if err != nil {
		return err
	}
	if environment != "" {
		if err := repo.CheckEnvironment(environment); err != nil {
			return err
		}
	}
	cacheDir, err := f.cacheDir()
	if err != nil {
		return err
	}
	all, problems, err := review.Clusters(ctx, repo, cacheDir)
	if err != nil {
		return err
	}
	ofManagement, err := only(f, repo, all, func(c fleetrepo.Cluster) string { return c.ManagementCluster })
	if err != nil {
		return err
	}
	some := []fleetrepo.Cluster{}
	for _, c := range ofManagement {
		if environment == "" || c.Environment == environment {
			some = append(some, c)
		}
	}
	if err := f.show(view(some, all, problems)); err != nil {
		return err
	}
	return problems.Err()
}

// anyRepo is fleetRepo for commands that only look. They also work without a fleet.yaml.
func (f *factory) anyRepo() (*fleetrepo.Repo, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return review.Open(dir)
}

// anyCluster returns a cluster of the layout, or one that the repo has as objects of Cluster API.
func (f *factory) anyCluster(ctx context.Context, name string) (*fleetrepo.Cluster, error) {
	repo, err := f.anyRepo()
	if err != nil {
		return nil, err
	}
	cluster, err := repo.Cluster(name)
	if err == nil {
		return cluster, nil
	}
	return f.manifestCluster(ctx, repo, name, err)
}

// manifestCluster returns the cluster that the repo has as objects of Cluster API with a name or NAMESPACE/NAME. If there is none, the
// error is the given one, with the names of these clusters too if it is about an unknown name. Several with the name are an error.
func (f *factory) manifestCluster(ctx context.Context, repo *fleetrepo.Repo, name string, orElse error) (*fleetrepo.Cluster, error) {
	cacheDir, err := f.cacheDir()
	if err != nil {
		return nil, err
	}
	all, _, err := review.Clusters(ctx, repo, cacheDir)
	if err != nil {
		return nil, orElse
	}
	var found []*fleetrepo.Cluster
	names := make([]string, 0, len(all))
	for i := range all {
		c := &all[i]
		names = append(names, c.Name)
		if c.Manifests && (c.Name == name || c.Namespace+"/"+c.Name == name) {
			found = append(found, c)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch len(found) {
	case 0:
		if _, ok := errors.AsType[*fleetrepo.UnknownClusterError](orElse); ok && len(names) > len(repo.Names()) {
			return nil, diag.Unknown("cluster", name, names, diag.Hint(orElse))
		}
		return nil, orElse
	case 1:
		return found[0], nil
	}
	return nil, diag.Usage("write NAMESPACE/NAME", "several clusters are called %s", name)
}

// notEditable returns the error of a command. If the command is for clusters of charts, and was given one that the repo has as objects of
// Cluster API, the error names the file to edit instead.
func (f *factory) notEditable(ctx context.Context, err error) error {
	unknown, ok := errors.AsType[*fleetrepo.UnknownClusterError](err)
	if !ok {
		return err
	}
	repo, openErr := f.fleetRepo()
	if openErr != nil {
		return err
	}
	c, noneErr := f.manifestCluster(ctx, repo, unknown.Name, err)
	if noneErr != nil {
		return noneErr
	}
	return diag.Usage("edit this file; `fleetctl diff` tells what the change does to the cluster",
		"cluster %s is made of manifests (%s:%d), and commands change only clusters that come from charts", unknown.Name, c.File, c.Line)
}

func newClusterShowCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what the fleet repo declares for one cluster",
		Example: "  fleetctl cluster show edge-1",
		RunE:    running(f, &named{}, runClusterShow),
	}
	takes(f, c, ofAnyCluster)
	return c
}

func runClusterShow(ctx context.Context, f *factory, o *named) error {
	cluster, err := f.anyCluster(ctx, o.name)
	if err != nil {
		return err
	}
	return f.show(views.Cluster(cluster))
}
