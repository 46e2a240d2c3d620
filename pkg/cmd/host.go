package cmd

import (
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
		Short: "Look at, start and stop what carries the management clusters of this machine",
		Long: `A management cluster has a host: kind (a container), embedded (processes of this machine, in the background) or existing (a cluster
that was there). An embedded one survives the terminal; after a reboot, start brings it back with all its data.`,
		Example: `  fleetctl host list
  fleetctl host start
  fleetctl host logs capi-system/capi-controller-manager`,
	}
	c.AddCommand(newHostListCmd(f), newHostStartCmd(f), newHostStopCmd(f), newHostLogsCmd(f), newHostDeleteCmd(f), newHostExecCmd(f), newHostIssuerCmd(f), newHostRunCmd(f))
	return c
}

func newHostListCmd(f *factory) *cobra.Command {
	return listFormats(&cobra.Command{
		Use:   "list",
		Short: "List the hosts that this machine remembers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			deps, err := f.deps()
			if err != nil {
				return err
			}
			list, err := management.ListHosts(c.Context(), deps)
			if err != nil {
				return err
			}
			return f.show(views.Hosts(list))
		},
	})
}

func newHostStartCmd(f *factory) *cobra.Command {
	return f.onManagement(&cobra.Command{
		Use:   "start",
		Short: "Start a host that was stopped, or that a reboot stopped, with all its data",
		Long: `Start a host that was stopped, or that a reboot stopped, with all its data, and what serves its fleet repo. After a pivot there is no host here
any more: start then serves a fleet repo without a remote again to the cluster that took over.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			deps, err := f.deps()
			if err != nil {
				return err
			}
			target, err := f.target()
			if err != nil {
				return err
			}
			result, err := management.StartHost(c.Context(), deps, target)
			if err == nil && result.Moved() {
				return showHost(f, result, nil, "The fleet repo of management cluster %s is served again.\n",
					"The management cluster %s has moved to another; there is nothing to start here.\n")
			}
			return showHost(f, result, err, "The management cluster %s runs.\n", "The management cluster %s runs already.\n")
		},
	})
}

func newHostStopCmd(f *factory) *cobra.Command {
	return f.onManagement(&cobra.Command{
		Use:   "stop",
		Short: "Stop an embedded host; its data stay",
		Long: `Stop the processes of an embedded host and what serves its fleet repo. Workload clusters go on without being managed; with start, all of it
goes on where it was. After a pivot it ends what serves a fleet repo without a remote; the cluster that took over then sees no new commits.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			target, err := f.target()
			if err != nil {
				return err
			}
			result, err := management.StopHost(c.Context(), target)
			if err == nil && result.Moved() {
				return showHost(f, result, nil, "The fleet repo of management cluster %s is not served any more; its Flux sees no new commits until `fleetctl host start`.\n",
					"The management cluster %s has moved to another; there is nothing to stop here.\n")
			}
			return showHost(f, result, err, "The management cluster %s is stopped.\n", "The management cluster %s does not run.\n")
		},
	})
}

func newHostDeleteCmd(f *factory) *cobra.Command {
	var force, yes bool
	c := &cobra.Command{
		Use:   "delete",
		Short: "Delete a host with all its data",
		Long: `Delete a host with all its data. It refuses while workload clusters live only there, or where nobody can tell because it does not run.
"fleetctl teardown" does more: it deletes or moves those clusters first and forgets the management cluster. The Git repository is
never touched.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			target, err := f.target()
			if err != nil {
				return err
			}
			if force && !yes {
				question := "This deletes the management cluster " + target.Name + ", and whatever workload clusters live only there go on unmanaged."
				if err := ui.ConfirmTyped(f.streams, question, target.Name, "--yes"); err != nil {
					return err
				}
			}
			result, err := management.DeleteHost(c.Context(), target, force)
			return showHost(f, result, err, "The host of management cluster %s is gone.\n", "The management cluster %s has no host; nothing to do.\n")
		},
	}
	f.addManagement(c)
	c.Flags().BoolVar(&force, "force", false, "delete it also where workload clusters live only there, or may")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func showHost(f *factory, result *management.HostResult, err error, changed, unchanged string) error {
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.HostDone(result, changed, unchanged))
}

func newHostLogsCmd(f *factory) *cobra.Command {
	var lines int
	c := &cobra.Command{
		Use:   "logs [PROGRAM]",
		Short: "Print the log of a program of an embedded host, or list those that there are",
		Long: `Print the last lines of a program's log: supervisor, etcd, kube-apiserver, kube-controller-manager, or a Deployment as
NAMESPACE/NAME. Without an argument it lists them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if lines <= 0 {
				return diag.Usage("give a number of lines above 0", "--lines %d is none", lines)
			}
			target, err := f.target()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return management.HostLog(c.Context(), target, args[0], lines, f.streams.Out)
			}
			names, err := management.HostLogs(c.Context(), target)
			if err != nil {
				return err
			}
			return f.show(views.HostLogs(names))
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			target, err := f.target()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names, err := management.HostLogs(c.Context(), target)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.addManagement(c)
	c.Flags().IntVar(&lines, "lines", 100, "how many lines")
	return c
}

// newHostRunCmd is the process in the background that holds an embedded host. init starts it; nobody else should.
func newHostRunCmd(f *factory) *cobra.Command {
	// It ends many processes in order when it is told to end, and nobody waits at a terminal.
	const patience = 30 * time.Second
	return &cobra.Command{
		Use:    "run STATE-DIR",
		Short:  "Hold the processes of an embedded host",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.setGrace(patience)
			return embedded.Run(c.Context(), args[0], embedded.Streams{In: f.streams.In, Hello: f.streams.Raw().Out, Log: f.streams.Raw().Err})
		},
	}
}
