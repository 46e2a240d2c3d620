package cmd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

func newClusterScaleCmd(f *factory) *cobra.Command {
	var o changeFlags
	var replicas int
	c := &cobra.Command{
		Use:     "scale NAME",
		Short:   "Change the number of control plane nodes of a cluster",
		Long:    "Change the number of control plane nodes of a cluster. Its pools are scaled with `fleetctl pool scale`." + editing,
		Example: "  fleetctl cluster scale shop --control-plane 3 --commit",
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("control-plane") {
				answer, err := askNow(f, args[0], "Number of control plane nodes", "the number of nodes is missing",
					"give --control-plane 3; pools are scaled with `fleetctl pool scale`", controlPlaneOf)
				if err != nil {
					return err
				}
				if replicas, err = strconv.Atoi(answer); err != nil {
					return diag.Usage("give --control-plane 3", "%q is not a number", answer)
				}
			}
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.ScaleControlPlane(args[0], replicas) })
		},
	}
	c.Flags().IntVar(&replicas, "control-plane", 0, "number of control plane nodes (also: --replicas)")
	alsoCalled(c, "control-plane", "replicas")
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// controlPlaneOf is the number of control plane nodes of a cluster, "" where its file does not say.
func controlPlaneOf(c *fleetrepo.Cluster) string {
	if c.ControlPlane == nil {
		return ""
	}
	return strconv.Itoa(*c.ControlPlane)
}

func newClusterUpgradeCmd(f *factory) *cobra.Command {
	var o changeFlags
	var options upgrade.Options
	var values []string
	c := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Upgrade Kubernetes on a cluster: the control plane, then the pools",
		Long: `Upgrade Kubernetes on a cluster, in two steps. The first changes the control plane and holds every pool at its version; run again when
the control plane is Ready, it lets the pools follow, all or those of --pool.

It refuses what Kubernetes and Cluster API refuse: to go back, to leave a minor version out, nodes more than three minor versions behind
their control plane. And where this machine knows the management cluster it looks at it: pools wait until every control plane node runs
the new version, and a control plane until it would leave out no minor version itself. --skip-health goes on without that look.` + editing + `

Exit codes: 0 done, or nothing to do; 3 the control plane is not as far as the fleet repo has it.`,
		Example: `  fleetctl cluster upgrade shop --version v1.36.3 --push
  fleetctl cluster upgrade shop --version v1.36.3 --pool general --push
  fleetctl cluster upgrade edge-7 --version v1.36.3 --set template=ubuntu-2404-kube-v1.36.3 --dry-run`,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if options.Version == "" {
				options.Version, err = askNow(f, args[0], "Version of Kubernetes to upgrade to", "the version to upgrade to is missing", "give --version v1.36.3",
					func(c *fleetrepo.Cluster) string { return c.KubernetesVersion })
				if err != nil {
					return err
				}
			}
			if options.Values, err = fleetrepo.ParseAssignments(values); err != nil {
				return err
			}
			options.Cluster = args[0]
			return edit(c, f, &o, upgrade.Next(c.Context(), f.store(), options))
		},
	}
	c.Flags().StringVar(&options.Version, "version", "", "Kubernetes version to upgrade to (also: --kubernetes-version)")
	alsoCalled(c, "version", "kubernetes-version")
	c.Flags().StringSliceVar(&options.Pools, "pool", nil, "in the second step, only these pools")
	f.addReach(c)
	c.Flags().BoolVar(&options.SkipHealth, "skip-health", false, "do not look at the control plane on the management cluster")
	c.Flags().StringArrayVar(&values, "set", nil, "value that changes with the version, path=value: template=ubuntu-2404-kube-v1.36.3")
	completeFlag(c, "pool", f.completeFrom(-1, func(r *fleetrepo.Repo, args []string) []string {
		if len(args) == 0 {
			return nil
		}
		return poolNames(r, args)
	}))
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

func newClusterFluxCmd(f *factory) *cobra.Command {
	var o changeFlags
	var mode, cni string
	c := &cobra.Command{
		Use:   "flux NAME",
		Short: "Change who applies what a cluster runs",
		Long: `Change who applies what a cluster runs: its own Flux, the management cluster's, or nobody. It writes the flux.yaml beside the cluster's
cluster.yaml, as ` + "`fleetctl cluster add`" + ` does for a new cluster; also for one that was there before fleetctl.` + editing,
		Example: `  fleetctl cluster flux shop --push
  fleetctl cluster flux edge-7 --flux remote --cni cilium --dry-run`,
		RunE: func(c *cobra.Command, args []string) error {
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
				return r.SetFlux(args[0], scaffold.FluxMode(mode), cni)
			})
		},
	}
	addFluxFlags(f, c, &mode, &cni)
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// addFluxFlags are what says how a cluster runs Flux.
func addFluxFlags(f *factory, c *cobra.Command, mode, cni *string) {
	c.Flags().StringVar(mode, "flux", "", "who applies what the cluster runs: own (its own Flux), remote (the management cluster's) or none (default: own, where the flavour can run Flux)")
	c.Flags().StringVar(cni, "cni", "", "folder of addons/cni with the network of its pods (default: the one that the flavour names, or the only one, where it needs one)")
	completeFlag(c, "cni", f.completeFrom(-1, networkNames))
	completeFlag(c, "flux", cobra.FixedCompletions(scaffold.FluxModes(), cobra.ShellCompDirectiveNoFileComp))
}

func newClusterPauseCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "pause NAME", Aliases: []string{"suspend"}, Short: "Keep changes in Git from a cluster",
		Long: "Keep changes in Git from a cluster: Flux suspends its HelmRelease. Cluster API goes on looking after its machines.",
	}
	f.pauses(c, clusterPausing(), true)
	return c
}

func newClusterResumeCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "resume NAME", Short: "Let changes in Git through to a paused cluster",
		Long: "Let changes in Git through to a cluster that `fleetctl cluster pause` has paused.",
	}
	f.pauses(c, clusterPausing(), false)
	return c
}

func clusterPausing() pausing {
	return pausing{noun: "cluster", what: ofCluster, byCommit: (*fleetrepo.Repo).Pause, atOnce: (*fleetrepo.Repo).PausedByCluster}
}

func newClusterRemoveCmd(f *factory) *cobra.Command {
	o := &clusterRemoveOptions{}
	var cancel bool
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Delete a cluster, in two steps",
		Long: `Delete a cluster, in two steps. A cluster whose file merely leaves Git stays: its HelmRelease and its Cluster are protected.

The first step takes that protection away and deletes nothing; --cancel takes it back. When Flux has applied it, the same command again
takes the files out: Flux then uninstalls the release, and Cluster API deletes the machines, the network and all that the cluster has in
the cloud, in order. This second step asks for the cluster's name.

With --wait, each step returns when it has come true on the management cluster, and the second deletes the cluster's namespace in the end.
A cluster whose own API server is dead goes as well: nothing waits for it.` + editing,
		Example: `  fleetctl cluster remove demo --push --wait
  fleetctl cluster remove demo --yes --push --wait`,
		RunE: func(c *cobra.Command, args []string) error {
			if cancel {
				return edit(c, f, &o.changeFlags, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.CancelRemove(args[0]) })
			}
			return runClusterRemove(c, f, o, args[0])
		},
	}
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask before the second step")
	f.addReach(c)
	c.Flags().BoolVar(&o.wait, "wait", false, "with --commit or --push, return when the step has come true on the management cluster")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait, give up after this time (default: each step has its own bound)")
	c.Flags().BoolVar(&cancel, "cancel", false, "take the first step back: protect the cluster again")
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// clusterRemoveOptions are the flags of cluster remove.
type clusterRemoveOptions struct {
	changeFlags
	yes, wait bool
	timeout   time.Duration
}

// runClusterRemove makes the next step. Each call makes one: where a push has to be repeated on top of others' commits, it stays the
// same step.
func runClusterRemove(c *cobra.Command, f *factory, o *clusterRemoveOptions, name string) error {
	if o.wait && (o.dryRun || !o.commit && !o.push) {
		return diag.Usage("give --commit or --push as well", "--wait waits for a commit")
	}
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	first, err := repo.Remove(name)
	if err != nil {
		return err
	}
	options := change.Options{Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		step, err := r.Remove(name)
		if err != nil {
			return nil, err
		}
		if step.Deletes != first.Deletes {
			return nil, diag.Errorf("look at the repo and run it again", "cluster %s was changed by others meanwhile", name)
		}
		return &step.Edit, nil
	}}
	if first.Deletes && !o.yes {
		options.Confirm = func(e *fleetrepo.Edit) error {
			question := fmt.Sprintf("%s\n", strings.Join(e.Notes, "\n"))
			return ui.ConfirmTyped(f.streams, question, first.Cluster.Name, "--yes")
		}
	}
	if err := runChange(c, f, &o.changeFlags, options); err != nil || !o.wait {
		return err
	}
	return awaitRemoval(c, f, o, repo, first)
}

func awaitRemoval(c *cobra.Command, f *factory, o *clusterRemoveOptions, repo *fleetrepo.Repo, step *fleetrepo.Removal) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	target, err := management.Find(deps.Store, step.Cluster.ManagementCluster, repo.Dir)
	if err != nil {
		return err
	}
	defer f.closeReporter()
	return lifecycle.AwaitRemoval(c.Context(), deps, lifecycle.RemovalOptions{Target: target, Cluster: step.Cluster, Deletes: step.Deletes, Timeout: o.timeout})
}
