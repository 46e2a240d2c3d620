package cmd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newPoolCmd(f *factory) *cobra.Command {
	c := &cobra.Command{Use: "pool", Short: "List and change the pools of worker nodes of clusters"}
	c.AddCommand(newPoolAddCmd(f), newPoolListCmd(f), newPoolScaleCmd(f), newPoolRemoveCmd(f))
	return c
}

// poolSize are the flags for the number of nodes of a pool.
type poolSize struct {
	replicas, least, most int
	// given tells whether a flag was given.
	given func(flag string) bool
}

func (s *poolSize) add(fs *pflag.FlagSet) {
	s.given = fs.Changed
	fs.IntVar(&s.replicas, "replicas", 0, "number of nodes")
	fs.IntVar(&s.least, "min", 0, "least number of nodes, for the autoscaler")
	fs.IntVar(&s.most, "max", 0, "greatest number of nodes, for the autoscaler")
}

// options returns the settings whose flags were given.
func (s *poolSize) options() fleetrepo.PoolOptions {
	var o fleetrepo.PoolOptions
	for name, field := range map[string]struct {
		from *int
		to   **int
	}{"replicas": {&s.replicas, &o.Replicas}, "min": {&s.least, &o.Min}, "max": {&s.most, &o.Max}} {
		if s.given(name) {
			*field.to = field.from
		}
	}
	return o
}

// ask returns options, or asks at the terminal if no flag was given.
func (s *poolSize) ask(f *factory, cluster, pool string) (fleetrepo.PoolOptions, error) {
	o := s.options()
	if !f.streams.InTerminal || o.Replicas != nil || o.Min != nil || o.Max != nil {
		return o, nil
	}
	answer, err := askNow(f, cluster, "Number of nodes, or least and greatest for the autoscaler, such as 3 or 1-5",
		"the size of the pool is missing",
		"give --replicas, or --min and --max for the autoscaler", func(c *fleetrepo.Cluster) string {
			if i := slices.IndexFunc(c.Pools, func(p fleetrepo.Pool) bool { return p.Name == pool }); i >= 0 {
				return c.Pools[i].Size()
			}
			return ""
		})
	if err != nil {
		return o, err
	}
	least, most, limits := strings.Cut(answer, "-")
	numbers := []string{least}
	into := []**int{&o.Replicas}
	if limits {
		numbers, into = []string{least, most}, []**int{&o.Min, &o.Max}
	}
	for i, text := range numbers {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return o, diag.Usage("write a number, such as 3, or two of them, such as 1-5", "%q is not the size of a pool", answer)
		}
		*into[i] = &n
	}
	return o, nil
}

// poolOptions are the arguments, and the flags, of the commands that change a pool.
type poolOptions struct {
	changeFlags
	cluster, pool string
}

func (o *poolOptions) complete(_ *factory, args ...string) error {
	o.cluster, o.pool = args[0], args[1]
	return nil
}

// poolAddOptions are the flags of pool add.
type poolAddOptions struct {
	poolOptions
	size   poolSize
	set    []string
	wanted fleetrepo.PoolOptions
}

func (o *poolAddOptions) complete(f *factory, args ...string) error {
	o.cluster, o.pool = args[0], args[1]
	if err := f.checkCluster(o.cluster); err != nil {
		return err
	}
	assignments, err := fleetrepo.ParseAssignments(o.set)
	if err != nil {
		return err
	}
	if o.wanted, err = o.size.ask(f, o.cluster, o.pool); err != nil {
		return err
	}
	o.wanted.Values, err = fleetrepo.Assign(nil, assignments)
	return err
}

func (o *poolAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddPool(o.cluster, o.pool, o.wanted)
}

func newPoolAddCmd(f *factory) *cobra.Command {
	o := &poolAddOptions{}
	c := &cobra.Command{
		Use:   "add CLUSTER POOL",
		Short: "Add a pool to a cluster",
		Long:  "Add a pool to a cluster. The chart's README lists the other values of a pool." + editing,
		Example: `  fleetctl pool add shop batch --replicas 3 --set size=m7i.xlarge
  fleetctl pool add shop burst --min 1 --max 10 --set size=m7i.large --set spot=true --push`,
		RunE: running(f, o, runEdit),
	}
	o.size.add(c.Flags())
	c.Flags().StringArrayVar(&o.set, "set", nil, "other value of the pool, path=value: size=m7i.large, spot=true")
	o.add(c)
	takes(f, c, ofCluster, argument{what: "pool"})
	return c
}

// poolScaleOptions are the flags of pool scale.
type poolScaleOptions struct {
	poolOptions
	size   poolSize
	wanted fleetrepo.PoolOptions
}

func (o *poolScaleOptions) complete(f *factory, args ...string) (err error) {
	o.cluster, o.pool = args[0], args[1]
	if err := f.checkCluster(o.cluster); err != nil {
		return err
	}
	o.wanted, err = o.size.ask(f, o.cluster, o.pool)
	return err
}

func (o *poolScaleOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.ScalePool(o.cluster, o.pool, o.wanted)
}

func newPoolScaleCmd(f *factory) *cobra.Command {
	o := &poolScaleOptions{}
	c := &cobra.Command{
		Use:   "scale CLUSTER POOL",
		Short: "Change the size of a pool",
		Long:  "Change the size of a pool: to a fixed number of nodes, or to limits for the autoscaler." + editing,
		Example: `  fleetctl pool scale shop general --replicas 5
  fleetctl pool scale shop general --min 3 --max 9 --push`,
		RunE: running(f, o, runEdit),
	}
	o.size.add(c.Flags())
	o.add(c)
	takes(f, c, ofCluster, ofPool)
	return c
}

func newPoolListCmd(f *factory) *cobra.Command {
	o := &poolListOptions{}
	c := listFormats(&cobra.Command{
		Use:   "list [CLUSTER]",
		Short: "List the pools of a cluster, or of all of them",
		Long: `List the pools of a cluster, or of all clusters that the fleet repo declares, from its files alone. Without a cluster, -o name
prints CLUSTER POOL, the arguments of the other commands for pools.

Exit codes: 0 all files could be read; 1 some could not: the list has the others.`,
		Example: `  fleetctl pool list shop
  fleetctl pool list --environment dev -o name | xargs -L 1 fleetctl pool scale --replicas 2 --dry-run
  fleetctl pool list -o json | jq -r '.pools[] | select(.replicas > 5) | .name'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeDeclared,
		RunE:              running(f, o, runPoolList),
	})
	f.addManagementFilter(c)
	c.Flags().StringVar(&o.environment, "environment", "", "only the pools of clusters of this environment")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

// poolListOptions are the arguments and the flags of pool list.
type poolListOptions struct {
	// clusters has at most one cluster. Without one, the pools of all clusters are listed.
	clusters    []string
	environment string
}

func (o *poolListOptions) complete(_ *factory, args ...string) error {
	if o.clusters = args; len(args) > 0 && o.environment != "" {
		return diag.Usage("name the cluster as environment/name", "give a cluster or --environment, not both")
	}
	return nil
}

func runPoolList(ctx context.Context, f *factory, o *poolListOptions) error {
	if len(o.clusters) == 0 {
		return f.showClusters(ctx, o.environment, func(some, all []fleetrepo.Cluster, problems diag.Findings) views.View {
			return views.Pools(some, all, problems, false)
		})
	}
	repo, err := f.anyRepo()
	if err != nil {
		return err
	}
	cluster, err := f.anyCluster(ctx, o.clusters[0])
	if err != nil {
		return err
	}
	one, err := only(f, repo, []fleetrepo.Cluster{*cluster}, func(c fleetrepo.Cluster) string { return c.ManagementCluster })
	if err != nil {
		return err
	}
	return f.show(views.Pools(one, one, diag.Findings{}, true))
}

// poolRemoveOptions are the arguments of pool remove.
type poolRemoveOptions struct{ poolOptions }

func (o *poolRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.RemovePool(o.cluster, o.pool)
}

func newPoolRemoveCmd(f *factory) *cobra.Command {
	o := &poolRemoveOptions{}
	c := &cobra.Command{
		Use:     "remove CLUSTER POOL",
		Short:   "Remove a pool and its nodes from a cluster",
		Long:    "Remove a pool from a cluster, and with it its nodes." + editing,
		Example: "  fleetctl pool remove shop batch --dry-run",
		RunE:    running(f, o, runEdit),
	}
	o.add(c)
	takes(f, c, ofCluster, ofPool)
	return c
}
