package cmd

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// --management names a management cluster, and only the commands that work on one take it: one that is not theirs would be passed over in
// silence. --cluster, where a command has it, names a workload cluster.

// addManagement gives c the flag that names the management cluster to work on.
func (f *factory) addManagement(c *cobra.Command) {
	f.managementFlag(c, "management cluster to work on (default: the only one of the fleet)")
}

// addReach gives c, which looks at a management cluster, the flags that say how that is reached: what this machine remembers of it does not count then.
func (f *factory) addReach(c *cobra.Command) {
	c.Flags().StringVar(&f.flags.kubeconfig, "kubeconfig", "", "kubeconfig that reaches the management cluster (default: this machine's record of it, or with --context your own)")
	c.Flags().StringVar(&f.flags.context, "context", "", "context of the management cluster in the kubeconfig (default with --kubeconfig: the current one)")
}

// addManagementFilter gives a list the flag that leaves in it what belongs to one management cluster; only applies it.
func (f *factory) addManagementFilter(c *cobra.Command) {
	f.managementFlag(c, "only this management cluster")
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

// completeManagementClusters offers the management clusters that fleet.yaml declares and those that this machine remembers.
func (f *factory) completeManagementClusters(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{}
	if repo, err := f.fleetRepo(); err == nil {
		names = slices.Concat(repo.ManagementClusterNames(), repo.StandbyNames())
	}
	records, err := f.store().List()
	if err != nil && len(names) == 0 {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, r := range records {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// only returns those of all that belong to the management cluster which --management names; all of them where it names none. of says whose
// an item is. It fails where fleet.yaml declares no management cluster of that name.
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

// addRenamed has a flag's old name answer with the new one, hidden from the help.
func addRenamed(fs *pflag.FlagSet, old, now string) {
	fs.Var(&renamedFlag{&renamedFlagError{old: old, now: now}}, old, "")
	fs.Lookup(old).Hidden = true
}

// renamedFlag is a flag that refuses every value.
type renamedFlag struct{ err *renamedFlagError }

func (r *renamedFlag) Set(string) error { return r.err }
func (*renamedFlag) String() string     { return "" }
func (*renamedFlag) Type() string       { return "string" }

// renamedFlagError tells the new name of a flag.
type renamedFlagError struct{ old, now string }

func (e *renamedFlagError) Error() string {
	return fmt.Sprintf("--%s is called --%s now", e.old, e.now)
}
