package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newClusterCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Declare, list and change the workload clusters of the fleet repo",
		Long: `Declare, list and change the workload clusters of the fleet repo. A cluster is named by its name, or by environment/name where several
have it.`,
	}
	c.AddCommand(
		newClusterAddCmd(f), newClusterListCmd(f), newClusterShowCmd(f), newClusterScaleCmd(f), newClusterUpgradeCmd(f), newClusterFluxCmd(f),
		newClusterPauseCmd(f), newClusterResumeCmd(f), newClusterRemoveCmd(f), newClusterKubeconfigCmd(f), newClusterDetachCmd(f), newClusterTransferCmd(f),
	)
	return c
}

func newClusterListCmd(f *factory) *cobra.Command {
	var environment string
	c := listFormats(&cobra.Command{
		Use:   "list",
		Short: "List the clusters that the fleet repo declares",
		Long: `List the clusters that the fleet repo declares, from its files alone: those of the layout, and those that stand somewhere as Cluster API's own
objects, as Flux would apply them. What runs is the business of fleetctl status.

Exit codes: 0 all files could be read; 1 some could not: the list has the others.`,
		Example: `  fleetctl cluster list
  fleetctl cluster list --environment prod -o json | jq -r .clusters[].name`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runClusterList(c.Context(), f, environment) },
	})
	f.addManagementFilter(c)
	c.Flags().StringVar(&environment, "environment", "", "only the clusters of this environment")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

func environmentNames(r *fleetrepo.Repo, _ []string) []string { return r.EnvironmentNames() }

// completeFlag registers the completion of a flag that the command has.
func completeFlag(c *cobra.Command, name string, complete cobra.CompletionFunc) {
	_ = c.RegisterFlagCompletionFunc(name, complete) // fails only for a flag that is not there
}

// clusterList is the result of cluster list.
type clusterList struct {
	FormatVersion string              `json:"formatVersion"`
	Clusters      []fleetrepo.Cluster `json:"clusters"`
	Problems      diag.Findings       `json:"problems"`
}

func runClusterList(ctx context.Context, f *factory, environment string) error {
	repo, err := f.anyRepo()
	if err != nil {
		return err
	}
	if environment != "" {
		if err := repo.CheckEnvironment(environment); err != nil {
			return err
		}
	}
	list := clusterList{FormatVersion: "1", Clusters: []fleetrepo.Cluster{}}
	all, problems, err := review.Clusters(ctx, repo, f.cacheDir())
	if err != nil {
		return err
	}
	list.Problems = problems
	ofManagement, err := only(f, repo, all, func(c fleetrepo.Cluster) string { return c.ManagementCluster })
	if err != nil {
		return err
	}
	for _, c := range ofManagement {
		if environment == "" || c.Environment == environment {
			list.Clusters = append(list.Clusters, c)
		}
	}
	if err := printList(f, list, list.Clusters, clusterTable(all)); err != nil {
		return err
	}
	return problems.Err()
}

// clusterTable shows clusters, of which there are all.
func clusterTable(all []fleetrepo.Cluster) table[fleetrepo.Cluster] {
	called := map[string]int{}
	for _, c := range all {
		called[c.Name]++
	}
	return table[fleetrepo.Cluster]{
		none: "There are no clusters; `fleetctl cluster add` declares one.",
		name: func(c fleetrepo.Cluster) string {
			switch {
			case called[c.Name] > 1 && c.Manifests:
				return c.Namespace + "/" + c.Name
			case called[c.Name] > 1:
				return c.Environment + "/" + c.Name
			}
			return c.Name
		},
		columns: []column[fleetrepo.Cluster]{
			{title: "ENVIRONMENT", of: func(c fleetrepo.Cluster) string { return cmp.Or(c.Environment, "-") }},
			{title: "NAME", of: func(c fleetrepo.Cluster) string { return c.Name }},
			{title: "NAMESPACE", optional: true, of: func(c fleetrepo.Cluster) string { return c.Namespace }},
			{title: "FLAVOUR", of: func(c fleetrepo.Cluster) string { return c.Flavour }},
			{title: "VERSION", of: func(c fleetrepo.Cluster) string { return c.KubernetesVersion }},
			{title: "CONTROL PLANE", of: controlPlane},
			{title: "POOLS", of: pools},
			{title: "MANAGEMENT CLUSTER", wide: true, of: func(c fleetrepo.Cluster) string { return c.ManagementCluster }},
			{title: "FILE", wide: true, of: func(c fleetrepo.Cluster) string { return fmt.Sprintf("%s:%d", c.File, c.Line) }},
			{title: "STATE", of: clusterState},
		},
	}
}

func controlPlane(c fleetrepo.Cluster) string {
	if c.ControlPlane == nil {
		return "-"
	}
	return strconv.Itoa(*c.ControlPlane)
}

// pools is one line about all pools: general 3, burst 1-5.
func pools(c fleetrepo.Cluster) string {
	parts := make([]string, 0, len(c.Pools))
	for _, p := range c.Pools {
		parts = append(parts, p.Name+" "+p.Size())
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func clusterState(c fleetrepo.Cluster) string {
	switch {
	case c.Removing:
		return "being removed"
	case c.Paused:
		return "paused"
	case c.Unprotected:
		return "not protected"
	}
	return ""
}

// anyRepo is fleetRepo for commands that only look: they work where there is no fleet.yaml as well.
func (f *factory) anyRepo() (*fleetrepo.Repo, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	return review.Open(dir)
}

// anyCluster is a cluster of the layout, or one that stands in the repo as Cluster API's own objects.
func (f *factory) anyCluster(ctx context.Context, name string) (*fleetrepo.Cluster, error) {
	repo, err := f.anyRepo()
	if err != nil {
		return nil, err
	}
	cluster, err := repo.Cluster(name)
	if err == nil {
		return cluster, nil
	}
	all, _, listErr := review.Clusters(ctx, repo, f.cacheDir())
	if listErr != nil {
		return nil, err
	}
	var found []*fleetrepo.Cluster
	for i := range all {
		if c := &all[i]; c.Manifests && (c.Name == name || c.Namespace+"/"+c.Name == name) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	}
	return nil, diag.Usage("write NAMESPACE/NAME", "several clusters are called %s", name)
}

func newClusterShowCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what the fleet repo says of one cluster",
		Example: "  fleetctl cluster show edge-1",
		RunE: func(c *cobra.Command, args []string) error {
			cluster, err := f.anyCluster(c.Context(), args[0])
			if err != nil {
				return err
			}
			result := struct {
				FormatVersion string             `json:"formatVersion"`
				Cluster       *fleetrepo.Cluster `json:"cluster"`
			}{"1", cluster}
			return ui.Print(f.streams, f.format, result, func(w io.Writer) error { return clusterView(w, cluster) })
		},
	}
	takes(f, c, ofCluster)
	return c
}

func clusterView(w io.Writer, c *fleetrepo.Cluster) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"Cluster", c.Name},
		{"Namespace", c.Namespace},
		{"Environment", c.Environment},
		{"Management cluster", c.ManagementCluster},
		{"Flavour", c.Flavour},
		{"Kubernetes", c.KubernetesVersion},
		{"Control plane", controlPlane(*c)},
		{"State", clusterState(*c)},
		{"File", fmt.Sprintf("%s:%d", c.File, c.Line)},
	} {
		if row[1] != "" {
			ui.Fprintf(t, "%s\t%s\n", row[0], row[1])
		}
	}
	for _, p := range c.Pools {
		line := p.Nodes()
		if p.KubernetesVersion != "" {
			line += ", " + p.KubernetesVersion
		}
		ui.Fprintf(t, "Pool %s\t%s\n", p.Name, line)
	}
	return t.Flush()
}
