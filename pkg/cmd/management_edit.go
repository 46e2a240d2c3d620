package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/views"
)

var ofManagement = argument{
	what: "management cluster", command: "management",
	choices: func(r *fleetrepo.Repo, _ []string) []string { return r.ManagementClusterNames() },
}

func newManagementCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "management", Short: "List, add and remove the management clusters that fleet.yaml declares",
		Long: `A management cluster runs Cluster API, its providers and Flux. Each has its own folder, providers/<cloud>/<generation>. To
replace a management cluster, add one of a new generation beside it and hand the clusters over.`,
	}
	c.AddCommand(newManagementAddCmd(f), newManagementListCmd(f), newManagementRemoveCmd(f))
	return c
}

// managementAddOptions are the flags of management add.
type managementAddOptions struct {
	changeFlags
	wanted      v1alpha1.ManagementCluster
	hostContext string
	providers   []string
	// remembered are the management clusters of all fleets that this machine knows.
	remembered []string
}

func (o *managementAddOptions) complete(f *factory, args ...string) error {
	o.wanted.Name = args[0]
	records, _ := f.store().Readable() // without them, only the fleet repo tells of a parent
	for _, r := range records {
		o.remembered = append(o.remembered, r.Name)
	}
	if o.hostContext != "" {
		o.wanted.Host.Existing = &v1alpha1.ExistingHost{Context: o.hostContext}
	}
	given, err := parseProviders(o.providers)
	for _, p := range given {
		o.wanted.Providers = append(o.wanted.Providers, v1alpha1.Provider{Name: p.Name, Version: p.Version})
	}
	return err
}

func (o *managementAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	if err := o.checkParent(r); err != nil {
		return nil, err
	}
	return components.AddManagementCluster(o.wanted)(r)
}

// checkParent returns an error for a parent that is most likely a mistyped management cluster of the fleet. A parent can be one of another
// fleet, of which the fleet repo knows nothing.
func (o *managementAddOptions) checkParent(r *fleetrepo.Repo) error {
	parent, names := o.wanted.Parent, r.ManagementClusterNames()
	if slices.Contains(slices.Concat(names, o.remembered), parent) || diag.Nearest(parent, names) == "" {
		return nil
	}
	return diag.Usage(diag.Among(parent, names)+"; if it is one of another fleet, run this where `fleetctl host list` shows it",
		"--parent: this fleet has no management cluster %q", parent)
}

func newManagementAddCmd(f *factory) *cobra.Command {
	o := &managementAddOptions{}
	wanted := &o.wanted
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Declare a management cluster",
		Long: `Declare a management cluster in fleet.yaml. ` + "`fleetctl init --management NAME`" + ` makes it. If the cloud already has a
management cluster, the new one gets the next generation, v2 beside v1, or the generation that --generation names. With --parent, another
management cluster makes it, as a workload cluster of that name.` + editing,
		Example: `  fleetctl management add platform --provider aws --host kind --push
  fleetctl management add platform-2 --provider aws --generation v2 --host kind --dry-run`,
		RunE: running(f, o, runEdit),
	}
	fs := c.Flags()
	fs.StringSliceVar(&o.providers, "provider", nil, "infrastructure provider, name or name:version; several times")
	fs.StringVar((*string)(&wanted.Host.Type), "host", "", "kind of the host: "+hostNames()+" (default: what init finds)")
	completeFlag(c, "host", cobra.FixedCompletions(hostTypes(), cobra.ShellCompDirectiveNoFileComp))
	fs.StringVar(&o.hostContext, "host-context", "", "context of an existing cluster")
	fs.StringVar(&wanted.Parent, "parent", "", "management cluster that makes the new one")
	fs.StringVar(&wanted.Cloud, "cloud", "", "folder below providers, for the cloud (default: the name of the first infrastructure provider)")
	fs.StringVar(&wanted.Generation, "generation", "",
		"folder below the cloud's folder, for a generation of the management cluster (default: v1, or the next free one)")
	fs.StringVar(&wanted.KubernetesVersion, "kubernetes-version", "", "Kubernetes of the management cluster (default: the host's)")
	completeFlag(c, "parent", f.completeFrom(-1, ofManagement.choices))
	o.add(c)
	takes(f, c, argument{what: "management cluster"})
	return c
}

func newManagementRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short: "Remove a management cluster without workload clusters from fleet.yaml",
		Long: `Remove a management cluster from fleet.yaml, with its folder. First remove its workload clusters, or hand them to
another management cluster. The command also removes the tenants of a cloud in which no other management cluster has a folder,
and charts that only its providers brought, if nobody has changed them. This does not delete the management cluster: first run
` + "`fleetctl teardown`" + `.` + editing,
		Example: "  fleetctl management remove platform --push",
	}, ofManagement, f.removeManagementCluster)
}

// removeManagementCluster is the edit of fleetrepo, which knows the clusters of charts only. It refuses for clusters of plain manifests
// too.
func (f *factory) removeManagementCluster(r *fleetrepo.Repo, name string) (*fleetrepo.Edit, error) {
	e, err := r.RemoveManagementCluster(name)
	if err != nil {
		return nil, err
	}
	return e, f.refuseManifests(r, "management cluster "+name, func(c fleetrepo.Cluster) bool { return c.ManagementCluster == name })
}

// refuseManifests returns an error if what is to be removed makes clusters of plain manifests: those for which theirs is true.
func (f *factory) refuseManifests(r *fleetrepo.Repo, what string, theirs func(c fleetrepo.Cluster) bool) error {
	clusters, _, err := review.Clusters(f.command.Context(), r, "") // the repo may be a copy, for which a cache has no use
	if err != nil {
		return err
	}
	var names []string
	for _, c := range clusters {
		if c.Manifests && theirs(c) {
			names = append(names, fmt.Sprintf("%s/%s (%s:%d)", c.Namespace, c.Name, c.File, c.Line))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return diag.Errorf("delete them first, or move their manifests to another management cluster",
		"%s makes %s of plain manifests: %s", what, plain.Count(len(names), "cluster"), strings.Join(names, ", "))
}

func newManagementListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "management", "List the management clusters that fleet.yaml declares", f.managementClusters, views.ManagementClusters)
}

// managementClusters lists the management clusters of the repo, with how many clusters each makes.
func (f *factory) managementClusters(r *fleetrepo.Repo) ([]fleetrepo.ManagementCluster, error) {
	cacheDir, err := f.cacheDir()
	if err != nil {
		return nil, err
	}
	return review.ManagementClusters(f.command.Context(), r, cacheDir)
}
