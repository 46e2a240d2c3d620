package cmd

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// --management names a management cluster. Only commands that work on one have the flag, so that no command ignores it silently.
// --cluster names a workload cluster.

// addManagement gives c the flag that names the management cluster to work on.
func (f *factory) addManagement(c *cobra.Command) {
	f.managementFlag(c, "management cluster to work on (default: the only one of the fleet)")
}

// addReach adds the flags that say how c reaches a management cluster. With them, c does not use this machine's record of it.
func (f *factory) addReach(c *cobra.Command) {
	c.Flags().StringVar(&f.flags.kubeconfig, "kubeconfig", "",
		"kubeconfig that reaches the management cluster (default: this machine's record of it, or with --context your own)")
	c.Flags().StringVar(&f.flags.context, "context", "",
		"context of the management cluster in the kubeconfig (default with --kubeconfig: the current one)")
}

// addManagementFilter adds the flag that restricts a list to one management cluster. The function only applies the flag.
func (f *factory) addManagementFilter(c *cobra.Command) {
	f.managementFlag(c, "only this management cluster")
	doesWithout(c, worksOnAll)
}

// onManagement is addManagement for a command that has no other flags.
func (f *factory) onManagement(c *cobra.Command) *cobra.Command {
	f.addManagement(c)
	return c
}

func (f *factory) managementFlag(c *cobra.Command, usage string) {
	c.Flags().StringVarP(&f.flags.management, "management", "m", "", usage)
	completeFlag(c, "management", f.completeManagementClusters)
}

// completeManagementClusters completes the name of a management cluster from fleet.yaml and from this machine's records.
func (f *factory) completeManagementClusters(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{}
	if repo, err := f.fleetRepo(); err == nil {
		names = slices.Concat(repo.ManagementClusterNames(), repo.StandbyNames())
	}
	records, err := f.store().Readable()
	if err != nil && len(names) == 0 {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, r := range records {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// only returns the items that belong to the management cluster in --management, or all items without the flag. of returns the name of an
// item's management cluster. only fails if fleet.yaml declares no management cluster of that name.
func only[T any](f *factory, r *fleetrepo.Repo, all []T, of func(item T) string) ([]T, error) {
	if f.flags.management == "" {
		return all, nil
	}
	m, err := r.Fleet.ManagementCluster(f.flags.management)
	if err != nil {
		return nil, err
	}
	some := []T{}
	for _, item := range all {
		if of(item) == m.Name {
			some = append(some, item)
		}
	}
	return some, nil
}

// addRenamed adds a hidden flag with an old name. Using it is an error that says the new name.
func addRenamed(fs *pflag.FlagSet, old, now string) {
	fs.Var(&renamedFlag{&renamedFlagError{old: old, now: now}}, old, "")
	fs.Lookup(old).Hidden = true
}

// renamedFlag is a flag that refuses every value.
type renamedFlag struct{ err *renamedFlagError }

func (r *renamedFlag) Set(string) error { return r.err }
func (*renamedFlag) String() string     { return "" }
func (*renamedFlag) Type() string       { return "string" }

// renamedFlagError is the error for the old name of a flag.
type renamedFlagError struct{ old, now string }

func (e *renamedFlagError) Error() string {
	return fmt.Sprintf("--%s is called --%s now", e.old, e.now)
}
