package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newHostCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Look at, start and stop the hosts of the management clusters on this machine",
		Long: `A management cluster has a host: kind (a container), embedded (background processes on this machine) or existing (a cluster
that somebody else made). An embedded host survives the terminal. After a reboot, fleetctl host start starts it again with all its data.`,
		Example: `  fleetctl host list
  fleetctl host start
  fleetctl host logs capi-system/capi-controller-manager`,
	}
	c.AddCommand(newHostListCmd(f), newHostStartCmd(f), newHostStopCmd(f), newHostLogsCmd(f), newHostDeleteCmd(f), newHostExecCmd(f),
		newHostIssuerCmd(f), newHostRunCmd(f))
	return c
}

func newHostListCmd(f *factory) *cobra.Command {
	return listFormats(&cobra.Command{
		Use:   "list",
		Short: "List the hosts that this machine remembers",
		Args:  cobra.NoArgs,
		RunE:  running(f, asGiven{}, runHostList),
	})
}

func runHostList(ctx context.Context, f *factory, _ asGiven) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	list, err := management.ListHosts(ctx, deps)
	if err != nil {
		return err
	}
	return f.show(views.Hosts(list))
}

func newHostStartCmd(f *factory) *cobra.Command {
	return f.onManagement(&cobra.Command{
		Use:   "start",
		Short: "Start a host that was stopped, or that a reboot stopped, with all its data",
		Long: `Start a stopped host with all its data, also after a reboot, and the server of its fleet repo. The host starts with the
settings that it had: to start it with changed settings of fleet.yaml, such as serviceAccountIssuer or mirrors, run
fleetctl init instead. After a pivot there is no host on this machine any more: start then only serves the fleet repo,
if it has no remote, to the cluster that took over.`,
		Args: cobra.NoArgs,
		RunE: running(f, asGiven{}, runHostStart),
	})
}

func runHostStart(ctx context.Context, f *factory, _ asGiven) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	target, err := f.target()
	if err != nil {
		return err
	}
	result, err := management.StartHost(ctx, deps, target)
	if err == nil && result.Moved() {
		return showHost(f, result, nil, "The fleet repo of management cluster %s is served again.\n",
			"The management cluster %s has moved to another; there is nothing to start here.\n")
	}
	return showHost(f, result, err, "The management cluster %s runs.\n", "The management cluster %s runs already.\n")
}

func newHostStopCmd(f *factory) *cobra.Command {
	return f.onManagement(&cobra.Command{
		Use:   "stop",
		Short: "Stop an embedded host; its data stay",
		Long: `Stop the processes of an embedded host and the server of its fleet repo. Workload clusters go on running, and nothing manages
them until fleetctl host start. After a pivot, stop only ends the server of a fleet repo without a remote: the cluster that took over then
sees no new commits.`,
		Args: cobra.NoArgs,
		RunE: running(f, asGiven{}, runHostStop),
	})
}

func runHostStop(ctx context.Context, f *factory, _ asGiven) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	result, err := management.StopHost(ctx, target)
	if err == nil && result.Moved() {
		return showHost(f, result, nil,
			"The fleet repo of management cluster %s is not served any more; its Flux sees no new commits until `fleetctl host start`.\n",
			"The management cluster %s has moved to another; there is nothing to stop here.\n")
	}
	return showHost(f, result, err, "The management cluster %s is stopped.\n", "The management cluster %s does not run.\n")
}

// hostDeleteOptions are the flags of host delete.
type hostDeleteOptions struct {
	asGiven
	force, yes bool
}

func newHostDeleteCmd(f *factory) *cobra.Command {
	o := &hostDeleteOptions{}
	c := &cobra.Command{
		Use:   "delete",
		Short: "Delete a host with all its data",
		Long: `Delete a host with all its data. The command refuses while no other management cluster has the workload clusters. It also
refuses while the host does not run, because nobody can ask the host for its workload clusters then. "fleetctl teardown" does more: it can
delete the workload clusters first, and it removes the record of the management cluster. The command never touches the Git repository.`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runHostDelete),
	}
	f.addManagement(c)
	c.Flags().BoolVar(&o.force, "force", false, "delete the host even if no other management cluster has its workload clusters")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

func runHostDelete(ctx context.Context, f *factory, o *hostDeleteOptions) error {
	f.setGrace(cleanUpTime)
	target, err := f.target()
	if err != nil {
		return err
	}
	if o.force && !o.yes {
		question := "This deletes the management cluster " + target.Name +
			". Nobody manages its workload clusters afterwards, unless another management cluster has them. `fleetctl init` would make them a " +
			"second time; `fleetctl restore` finds them again, from a snapshot."
		if err := ui.ConfirmTyped(f.streams, question, target.Name, "--yes"); err != nil {
			return err
		}
	}
	result, err := management.DeleteHost(ctx, target, o.force)
	return showHost(f, result, err, "The host of management cluster %s is gone.\n", "The management cluster %s has no host; nothing to do.\n")
}

func showHost(f *factory, result *management.HostResult, err error, changed, unchanged string) error {
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.HostDone(result, changed, unchanged))
}

func newHostLogsCmd(f *factory) *cobra.Command {
	o := &hostLogsOptions{}
	c := listFormats(&cobra.Command{
		Use:   "logs [PROGRAM]",
		Short: "Print the log of a program of an embedded host, or list its programs",
		Long: `Print the last lines of a program's log: supervisor, etcd, kube-apiserver, kube-controller-manager, or a Deployment as
NAMESPACE/NAME. Without an argument it lists them.`,
		Args:              cobra.MaximumNArgs(1),
		RunE:              running(f, o, runHostLogs),
		ValidArgsFunction: f.completeHostLogs,
	})
	f.addManagement(c)
	o.given = c.Flags().Changed
	c.Flags().IntVar(&o.lines, "lines", 100, "how many lines")
	return c
}

// completeHostLogs completes the name of a program that has a log.
func (f *factory) completeHostLogs(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	target, err := f.target()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := management.HostLogs(c.Context(), target)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// hostLogsOptions are the flags of host logs.
type hostLogsOptions struct {
	// programs has at most one program. Without one, the command lists the logs.
	programs []string
	lines    int
	// given tells whether a flag was given.
	given func(flag string) bool
}

func (o *hostLogsOptions) complete(f *factory, args ...string) error {
	if o.programs = args; len(args) == 0 && o.given("lines") && !f.settings.FromOutside("lines") {
		return diag.Usage("name a program; `fleetctl host logs` lists them", "--lines has no effect without a program")
	}
	if len(args) > 0 {
		if err := f.refuseFormat("a log is printed as it is"); err != nil {
			return err
		}
	}
	if o.lines <= 0 {
		return diag.Usage("give a number of lines above 0", "--lines %d is not a number of lines", o.lines)
	}
	return nil
}

func runHostLogs(ctx context.Context, f *factory, o *hostLogsOptions) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	if len(o.programs) > 0 {
		return management.HostLog(ctx, target, o.programs[0], o.lines, f.streams.Out)
	}
	names, err := management.HostLogs(ctx, target)
	if err != nil {
		return err
	}
	return f.show(views.HostLogs(names))
}

// newHostRunCmd is the supervisor of an embedded host, a background process. Only fleetctl itself starts it.
func newHostRunCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:    "run STATE-DIR",
		Short:  "Supervise the processes of an embedded host",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   running(f, &named{}, runHostRun),
	}
}

func runHostRun(ctx context.Context, f *factory, stateDir *named) error {
	// The supervisor ends many processes in order, which takes time, and nobody waits for it at a terminal.
	const patience = 30 * time.Second
	f.setGrace(patience)
	return embedded.Run(ctx, stateDir.name, embedded.Streams{In: f.streams.In, Hello: f.streams.Raw().Out, Log: f.streams.Raw().Err})
}
