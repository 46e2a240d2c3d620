package cmd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

// clusterScaleOptions are the flags of cluster scale.
type clusterScaleOptions struct {
	changeFlags
	named
	replicas int
	// given tells whether a flag was given.
	given func(flag string) bool
}

func (o *clusterScaleOptions) complete(f *factory, args ...string) error {
	o.name = args[0]
	if o.given("control-plane") {
		return nil
	}
	answer, err := askNow(f, o.name, "Number of control plane nodes", "the number of nodes is missing",
		"give --control-plane 3; pools are scaled with `fleetctl pool scale`", controlPlaneOf)
	if err != nil {
		return err
	}
	if o.replicas, err = strconv.Atoi(answer); err != nil {
		return diag.Usage("give --control-plane 3", "%q is not a number", answer)
	}
	return nil
}

func (o *clusterScaleOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.ScaleControlPlane(o.name, o.replicas)
}

func newClusterScaleCmd(f *factory) *cobra.Command {
	o := &clusterScaleOptions{}
	c := &cobra.Command{
		Use:     "scale NAME",
		Short:   "Change the number of control plane nodes of a cluster",
		Long:    "Change the number of control plane nodes of a cluster. Its pools are scaled with `fleetctl pool scale`." + editing,
		Example: "  fleetctl cluster scale shop --control-plane 3 --commit",
		RunE:    running(f, o, runEdit),
	}
	o.given = c.Flags().Changed
	c.Flags().IntVar(&o.replicas, "control-plane", 0, "number of control plane nodes (also: --replicas)")
	alsoCalled(c, "control-plane", "replicas")
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// controlPlaneOf is the number of control plane nodes of a cluster, "" if its file does not have it.
func controlPlaneOf(c *fleetrepo.Cluster) string {
	if c.ControlPlane == nil {
		return ""
	}
	return strconv.Itoa(*c.ControlPlane)
}

// clusterUpgradeOptions are the flags of cluster upgrade.
type clusterUpgradeOptions struct {
	changeFlags
	upgrade upgrade.Options
	set     []string
}

func (o *clusterUpgradeOptions) complete(f *factory, args ...string) (err error) {
	o.upgrade.Cluster = args[0]
	if o.upgrade.Version == "" {
		o.upgrade.Version, err = askNow(f, args[0], "Version of Kubernetes to upgrade to", "the version to upgrade to is missing",
			"give --version v1.36.3",
			func(c *fleetrepo.Cluster) string { return c.KubernetesVersion })
		if err != nil {
			return err
		}
	}
	o.upgrade.Values, err = fleetrepo.ParseAssignments(o.set)
	return err
}

func runClusterUpgrade(ctx context.Context, f *factory, o *clusterUpgradeOptions) error {
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: upgrade.Next(ctx, f.store(), o.upgrade)})
}

func newClusterUpgradeCmd(f *factory) *cobra.Command {
	o := &clusterUpgradeOptions{}
	options := &o.upgrade
	c := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Upgrade Kubernetes on a cluster: the control plane, then the pools",
		Long: `Upgrade Kubernetes on a cluster, in two steps. The first run changes the control plane and holds every pool at its current
version. Run the command again when the control plane is Ready: all pools follow, or only the pools of --pool.

The command refuses what Kubernetes and Cluster API refuse: a downgrade, skipping a minor version, and nodes more than three minor versions
behind their control plane. If this machine knows the management cluster, the command also looks at the running cluster: pools wait until
every control plane node runs the new version, and the control plane waits until the step skips no minor version for any of its nodes.
--skip-health skips this look.` + editing + `

Exit codes: 0 done, or nothing to do; 3 the control plane does not run the version in the fleet repo yet.`,
		Example: `  fleetctl cluster upgrade shop --version v1.36.3 --push
  fleetctl cluster upgrade shop --version v1.36.3 --pool general --push
  fleetctl cluster upgrade edge-7 --version v1.36.3 --set template=ubuntu-2404-kube-v1.36.3 --dry-run`,
		RunE: running(f, o, runClusterUpgrade),
	}
	c.Flags().StringVar(&options.Version, "version", "", "Kubernetes version to upgrade to (also: --kubernetes-version, --to)")
	alsoCalled(c, "version", "kubernetes-version", "to")
	c.Flags().StringSliceVar(&options.Pools, "pool", nil, "in the second step, only these pools")
	f.addReach(c)
	c.Flags().BoolVar(&options.SkipHealth, "skip-health", false, "do not look at the control plane on the management cluster")
	c.Flags().StringArrayVar(&o.set, "set", nil, "value that changes with the version, path=value: template=ubuntu-2404-kube-v1.36.3")
	completeFlag(c, "pool", f.completeFrom(-1, poolNames))
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// clusterFluxOptions are the flags of cluster flux.
type clusterFluxOptions struct {
	changeFlags
	named
	mode scaffold.FluxMode
	cni  string
}

func (o *clusterFluxOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.SetFlux(o.name, o.mode, o.cni)
}

func newClusterFluxCmd(f *factory) *cobra.Command {
	o := &clusterFluxOptions{}
	c := &cobra.Command{
		Use:   "flux NAME",
		Short: "Change which Flux applies the manifests of a cluster",
		Long: `Change which Flux applies the manifests of a cluster: its own, the management cluster's, or none. The command writes the
flux.yaml next to the cluster's cluster.yaml, as ` + "`fleetctl cluster add`" + ` does for a new cluster. This works for a cluster that is
older than the use of fleetctl, too.

What no flag names stays as the flux.yaml has it: --flux keeps the network, and --cni the Flux. A cluster without a flux.yaml gets what a
new cluster of its flavour gets.` + editing,
		Example: `  fleetctl cluster flux shop --push
  fleetctl cluster flux edge-7 --flux remote --cni cilium --dry-run`,
		RunE: running(f, o, runEdit),
	}
	addFluxFlags(f, c, (*string)(&o.mode), &o.cni, "as it is", "as it is")
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// addFluxFlags adds the flags for the Flux and the network of a cluster. modeElse and cniElse say what counts without the flags.
func addFluxFlags(f *factory, c *cobra.Command, mode, cni *string, modeElse, cniElse string) {
	c.Flags().StringVar(mode, "flux", "",
		"Flux that applies the cluster's manifests: own, remote (the management cluster's) or none (default: "+modeElse+")")
	c.Flags().StringVar(cni, "cni", "", "folder of addons/cni with the pod network, if the flavour needs one (default: "+cniElse+")")
	completeFlag(c, "cni", f.completeFrom(-1, networkNames))
	completeFlag(c, "flux", cobra.FixedCompletions(scaffold.FluxModes(), cobra.ShellCompDirectiveNoFileComp))
}

func newClusterPauseCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "pause NAME", Aliases: []string{"suspend"}, Short: "Stop changes in Git from reaching a cluster",
		Long: "Stop changes in Git from reaching a cluster: its HelmRelease is suspended. Cluster API goes on managing its machines.",
	}
	f.pauses(c, clusterPausing(), true)
	return c
}

func newClusterResumeCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "resume NAME", Short: "Let changes in Git reach a paused cluster again",
		Long: "Let changes in Git reach a cluster again that `fleetctl cluster pause` has paused.",
	}
	f.pauses(c, clusterPausing(), false)
	return c
}

func clusterPausing() pausing {
	return pausing{noun: "cluster", what: ofCluster, byCommit: (*fleetrepo.Repo).Pause, atOnce: (*fleetrepo.Repo).PausedByCluster}
}

func newClusterRemoveCmd(f *factory) *cobra.Command {
	o := &clusterRemoveOptions{}
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Delete a cluster, in two steps",
		Long: `Delete a cluster, in two steps. Deleting the cluster's file in Git alone deletes nothing, because its HelmRelease and its
Cluster are protected.

The first step removes this protection and deletes nothing; --cancel undoes it. When Flux has applied the first step, run the same command
again. This second step asks for the cluster's name and removes the files. Flux then uninstalls the release, and Cluster API deletes the
machines, the network and everything else that it made in the cloud, in order.

With --wait, each step returns when the management cluster has carried it out. The second step waits for the first before it commits, and
deletes the cluster's namespace at the end. A cluster whose own API server is dead can be deleted too: nothing waits for that server.` + editing,
		Example: `  fleetctl cluster remove demo --push --wait
  fleetctl cluster remove demo --yes --push --wait`,
		RunE: running(f, o, runClusterRemove),
	}
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask before the second step")
	f.addReach(c)
	c.Flags().BoolVar(&o.wait, "wait", false, "with --commit or --push, wait until the management cluster has done the step")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait, give up after this time (default: each step has its own bound)")
	c.Flags().BoolVar(&o.cancel, "cancel", false, "undo the first step: protect the cluster again")
	o.add(c)
	takes(f, c, ofCluster)
	return c
}

// clusterRemoveOptions are the flags of cluster remove.
type clusterRemoveOptions struct {
	changeFlags
	named
	yes, wait, cancel bool
	timeout           time.Duration
}

func (o *clusterRemoveOptions) complete(f *factory, args ...string) error {
	if !o.cancel && o.wait && (o.dryRun || !o.commit && !o.push) {
		return diag.Usage("give --commit or --push as well", "--wait waits for a commit")
	}
	return o.named.complete(f, args...)
}

// edit undoes the first step.
func (o *clusterRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.CancelRemove(o.name)
}

// runClusterRemove makes the next of the two steps, and only one. If a push has to be repeated on top of other commits, it repeats the
// same step.
func runClusterRemove(ctx context.Context, f *factory, o *clusterRemoveOptions) error {
	if o.cancel {
		return runEdit(ctx, f, o)
	}
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	first, err := repo.Remove(o.name, o.wait)
	if err != nil && o.wait {
		return goOnRemoving(ctx, f, o, repo, err)
	}
	if err != nil {
		return err
	}
	if first.Deletes && !o.dryRun {
		if err := refuseAnothers(ctx, f, first.Cluster, repo.Dir); err != nil {
			return err
		}
	}
	options := change.Options{Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		step, err := r.Remove(o.name, o.wait)
		if err != nil {
			return nil, err
		}
		if step.Deletes != first.Deletes {
			return nil, diag.Errorf("look at the repo and run it again", "cluster %s was changed by others meanwhile", o.name)
		}
		return &step.Edit, nil
	}}
	if first.Deletes && !o.yes {
		options.Confirm = func(e *fleetrepo.Edit) error {
			question := fmt.Sprintf("%s\n", strings.Join(e.Notes, "\n"))
			return ui.ConfirmTyped(f.streams, question, first.Cluster.Name, "--yes")
		}
	}
	if !o.wait {
		return runChange(ctx, f, &o.changeFlags, options)
	}
	return removeAndWait(ctx, f, o, first, repo.Dir, options)
}

// goOnRemoving waits for a removal whose command was ended after its second commit: Git no longer declares the cluster, and a management
// cluster still has something of it. In all other cases it returns err, the error of the step.
func goOnRemoving(ctx context.Context, f *factory, o *clusterRemoveOptions, repo *fleetrepo.Repo, err error) error {
	deps, failed := f.deps()
	if failed != nil {
		return err
	}
	defer f.closeReporter()
	name := path.Base(o.name)
	unknown := []error{err}
	for _, manager := range repo.FormerManagers(o.name) { // Git does not tell which one it was
		target, failed := management.Find(deps.Store.For(manager), manager, repo.Dir)
		if failed != nil {
			continue
		}
		client, failed := clientWithin(ctx, target, o.timeout)
		if failed != nil {
			continue
		}
		goes, failed := target.Reached(ctx, client)
		if goes {
			goes, failed = leaving.Unfinished(ctx, client, name)
		}
		if failed != nil || !goes {
			unknown = append(unknown, failed)
			continue
		}
		ui.Fprintf(f.streams.Err, "The fleet repo no longer declares cluster %s: this goes on with its removal.\n", name)
		removal := leaving.RemovalOptions{Client: client, Cluster: fleetrepo.Cluster{Name: name}, Timeout: o.timeout}
		return awaitRemoval(ctx, deps, target, removal)
	}
	return errors.Join(unknown...)
}

// awaitRemoval waits until a cluster is gone, and forgets the management cluster that ran on it, if there was one.
func awaitRemoval(ctx context.Context, deps management.Deps, target *management.Target, removal leaving.RemovalOptions) error {
	if err := leaving.AwaitRemoval(ctx, deps, removal); err != nil {
		return err
	}
	target.ForgetCarried(ctx, deps, removal.Cluster.Name, func(ctx context.Context) ([]capi.Cluster, error) {
		manager, err := capi.New(removal.Client)
		if err != nil {
			return nil, err
		}
		return manager.Clusters(ctx)
	})
	return nil
}

// clientWithin returns a client of the management cluster. It asks whose the cluster is for at most limit; 0 is no limit.
func clientWithin(ctx context.Context, target *management.Target, limit time.Duration) (*kube.Client, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return target.Client(ctx)
}

// removeAndWait carries one step out and waits for it. The second step is committed only when Flux has applied the first.
func removeAndWait(
	ctx context.Context,
	f *factory,
	o *clusterRemoveOptions,
	step *fleetrepo.Removal,
	dir string,
	edit change.Options,
) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	target, err := management.Find(deps.Store.For(step.Cluster.ManagementCluster), step.Cluster.ManagementCluster, dir)
	if err != nil {
		return err
	}
	client, err := clientWithin(ctx, target, o.timeout)
	if err != nil {
		return err
	}
	removal := leaving.RemovalOptions{Client: client, Cluster: step.Cluster, Timeout: o.timeout}
	defer f.closeReporter()
	if ask := edit.Confirm; step.Deletes {
		edit.Confirm = func(e *fleetrepo.Edit) error {
			if err := leaving.AwaitUnprotected(ctx, deps, removal); err != nil || ask == nil {
				return err
			}
			return ask(e)
		}
	}
	if err := runChange(ctx, f, &o.changeFlags, edit); err != nil {
		return err
	}
	if step.Deletes {
		return awaitRemoval(ctx, deps, target, removal)
	}
	return leaving.AwaitUnprotected(ctx, deps, removal)
}
