package cmd

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

func newPoolCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "pool", Short: "Change the pools of worker nodes of a cluster"}
	c.AddCommand(newPoolAddCmd(f), newPoolScaleCmd(f), newPoolRemoveCmd(f))
	return c
}

// poolSize are the flags that say how many nodes a pool has.
type poolSize struct{ replicas, least, most int }

func (s *poolSize) add(fs *pflag.FlagSet) {
	fs.IntVar(&s.replicas, "replicas", 0, "number of nodes")
	fs.IntVar(&s.least, "min", 0, "least number of nodes, for the autoscaler")
	fs.IntVar(&s.most, "max", 0, "greatest number of nodes, for the autoscaler")
}

// options are the flags that were given.
func (s *poolSize) options(fs *pflag.FlagSet) fleetrepo.PoolOptions {
	var o fleetrepo.PoolOptions
	for name, field := range map[string]struct {
		from *int
		to   **int
	}{"replicas": {&s.replicas, &o.Replicas}, "min": {&s.least, &o.Min}, "max": {&s.most, &o.Max}} {
		if fs.Changed(name) {
			*field.to = field.from
		}
	}
	return o
}

func newPoolAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	var size poolSize
	var values []string
	c := &cobra.Command{
		Use:   "add CLUSTER POOL",
		Short: "Add a pool to a cluster",
		Long:  "Add a pool to a cluster. What else than its size a pool has is in the README of the chart." + editing,
		Example: `  fleetctl pool add shop batch --replicas 3 --set size=m7i.xlarge
  fleetctl pool add shop burst --min 1 --max 10 --set size=m7i.large --set spot=true --push`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeFrom(0, clusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			assignments, err := fleetrepo.ParseAssignments(values)
			if err != nil {
				return err
			}
			options := size.options(c.Flags())
			if options.Values, err = fleetrepo.Assign(nil, assignments); err != nil {
				return err
			}
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddPool(args[0], args[1], options) })
		},
	}
	size.add(c.Flags())
	c.Flags().StringArrayVar(&values, "set", nil, "other value of the pool, path=value: size=m7i.large, labels.team=shop")
	o.add(c)
	return c
}

func newPoolScaleCmd(f *factory) *cobra.Command {
	var o changeFlags
	var size poolSize
	c := &cobra.Command{
		Use:   "scale CLUSTER POOL",
		Short: "Change the size of a pool",
		Long:  "Change the size of a pool: to a fixed number of nodes, or to limits for the autoscaler." + editing,
		Example: `  fleetctl pool scale shop general --replicas 5
  fleetctl pool scale shop general --min 3 --max 9 --push`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeClusterAndPool,
		RunE: func(c *cobra.Command, args []string) error {
			options := size.options(c.Flags())
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.ScalePool(args[0], args[1], options) })
		},
	}
	size.add(c.Flags())
	o.add(c)
	return c
}

func newPoolRemoveCmd(f *factory) *cobra.Command {
	var o changeFlags
	c := &cobra.Command{
		Use:               "remove CLUSTER POOL",
		Short:             "Remove a pool and its nodes from a cluster",
		Long:              "Remove a pool from a cluster, and with it its nodes." + editing,
		Example:           "  fleetctl pool remove shop batch --dry-run",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeClusterAndPool,
		RunE: func(c *cobra.Command, args []string) error {
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.RemovePool(args[0], args[1]) })
		},
	}
	o.add(c)
	return c
}

// completeClusterAndPool completes the name of a cluster, then that of one of its pools.
func (f *factory) completeClusterAndPool(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return f.completeFrom(0, clusterNames)(c, args, toComplete)
	}
	return f.completeFrom(1, poolNames)(c, args, toComplete)
}
