// Package cmd is the command line. Every command has three parts: newXCmd binds flags to options, complete checks and completes the
// options, and runX calls one function of a workflow and gives its result to a view. So parsing and running can be tested separately.
package cmd

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/adopt"
	"github.com/fleetctl/fleetctl/pkg/census"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/validate"
)

// grace is how long an interrupted command may take to end by itself. Some libraries take no context: kind goes on making a node for a
// while, and the next run cleans up after it.
const grace = 1500 * time.Millisecond

// Main runs fleetctl with args and returns its exit code. When ctx ends (Ctrl-C, SIGTERM), Main prints the command to go on with, and
// returns within two seconds.
func Main(ctx context.Context, streams ui.Streams, args []string) int {
	if len(args) == 1 && args[0] == confine.Argument {
		return confine.Serve(adopt.Task, census.Task, validate.Task, validate.AddonTask, review.RenderTask, review.NeedsTask, review.ChartsTask,
			review.DiffTask, change.DeclaredTask, change.ValuesTask, following.WantedTask)
	}
	f := newFactory(streams)
	streams = f.streams
	root := newRootCmd(f)
	root.SetArgs(args)
	f.args = args
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)

	result := make(chan error, 1)
	go func() {
		inside, err := confined(ctx)
		if err == nil {
			err = root.ExecuteContext(inside)
		}
		result <- err
	}()

	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		select {
		case err = <-result:
		case <-time.After(cmp.Or(time.Duration(f.grace.Load()), grace)):
			err = ctx.Err()
		}
	}
	return finish(ctx, f, args, err)
}

// finish prints err and turns it into the exit code.
func finish(ctx context.Context, f *factory, args []string, err error) int {
	f.closeReporter()
	if err == nil {
		return diag.ExitOK
	}
	if ctx.Err() != nil {
		ui.Fail(f.streams, diag.Errorf("to go on, run: fleetctl "+diag.ShellCommand(args...), "interrupted"))
		return diag.ExitInterrupted
	}
	if errors.Is(err, errSilent) {
		return diag.Code(err)
	}
	if name := diag.Management(err); name != "" {
		f.about = []string{name}
	}
	ui.Fail(f.streams, err)
	return diag.Code(err)
}

// errSilent is the error of a command that has already printed the outcome. finish prints nothing more.
var errSilent = errors.New("already shown")

// silent returns the error of a command that succeeded and has already printed what is not ready. Its exit code is diag.ExitNotReady.
func silent() error { return &diag.Error{Err: errSilent, Code: diag.ExitNotReady} }

// Root is the whole command tree, for generating documentation.
func Root(streams ui.Streams) *cobra.Command { return newRootCmd(newFactory(streams)) }

func newRootCmd(f *factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "fleetctl",
		Short: "Bootstrap a fleet of Kubernetes clusters from one Git repository",
		Long: `fleetctl makes a management cluster, installs Cluster API and Flux on it, and points Flux at your fleet repo: one Git
repository that declares all your clusters, in all your clouds. From then on a commit is all it takes to change the fleet.`,
		Example: `  fleetctl init                                                # from an empty folder to a management cluster that follows it
  fleetctl cluster add demo --flavour in-memory --commit       # declare a cluster
  fleetctl status                                              # what runs, and what is wrong
  fleetctl teardown                                            # remove what init made`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return f.settle(c)
		},
	}
	f.root = root
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c, err, f.args) })
	addVersionFlag(f, root)
	f.addGlobalFlags(root.PersistentFlags())
	addRenamed(root.PersistentFlags(), "cluster", "management")
	root.AddGroup(
		&cobra.Group{ID: "lifecycle", Title: "Management cluster:"},
		&cobra.Group{ID: "repo", Title: "Fleet repo:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "offline", Title: "Air gap:"},
	)
	root.SetHelpCommandGroupID("")
	for _, c := range commands(f) {
		c.cmd.GroupID = c.group
		root.AddCommand(c.cmd)
	}
	addSynonyms(root)
	usageErrors(root)
	refusingHelp(root)
	_ = root.RegisterFlagCompletionFunc("output", completeFormats) // fails only if the command lacks the flag
	f.addCompletions(root)
	return root
}

// grouped is a command with its group in the help, "" for none.
type grouped struct {
	group string
	cmd   *cobra.Command
}

// commands are the commands below the root, in the order of its help.
func commands(f *factory) []grouped {
	return []grouped{
		{"lifecycle", newInitCmd(f)},
		{"lifecycle", newBootstrapCmd(f)},
		{"lifecycle", newPivotCmd(f)},
		{"lifecycle", newBackupCmd(f)},
		{"lifecycle", newRestoreCmd(f)},
		{"lifecycle", newDrillCmd(f)},
		{"lifecycle", newStandbyCmd(f)},
		{"lifecycle", newConnectCmd(f)},
		{"lifecycle", newUpgradeCmd(f)},
		{"lifecycle", newTeardownCmd(f)},
		{"lifecycle", newHostCmd(f)},
		{"repo", newAdoptCmd(f)},
		{"repo", newClusterCmd(f)},
		{"repo", newPoolCmd(f)},
		{"repo", newEnvironmentCmd(f)},
		{"repo", newChannelCmd(f)},
		{"repo", newCICmd(f)},
		{"repo", newPromoteCmd(f)},
		{"repo", newTenantCmd(f)},
		{"repo", newAppCmd(f)},
		{"repo", newNotificationCmd(f)},
		{"repo", newFeatureCmd(f)},
		{"repo", newCNICmd(f)},
		{"repo", newRevertCmd(f)},
		{"repo", newChartCmd(f)},
		{"repo", newManagementCmd(f)},
		{"repo", newProviderCmd(f)},
		{"repo", newIdentityCmd(f)},
		{"repo", newSecretCmd(f)},
		{"repo", newRenderCmd(f)},
		{"repo", newDiffCmd(f)},
		{"repo", newLockCmd(f)},
		{"repo", newValidateCmd(f)},
		{"look", newStatusCmd(f)},
		{"look", newWhyCmd(f)},
		{"look", newKubeconfigCmd(f)},
		{"look", newCredentialsCmd(f)},
		{"look", newOrphansCmd(f)},
		{"look", newDoctorCmd(f)},
		{"look", newSupportBundleCmd(f)},
		{"offline", newBundleCmd(f)},
		{"", newConfigCmd(f)},
		{"", newVersionCmd(f)},
		{"", newGitServeCmd(f)},
	}
}

// usageErrors turns the error for a wrong number of arguments, for an empty one, or for an unknown command, into a usage error with a hint.
func usageErrors(c *cobra.Command) {
	switch args := c.Args; {
	case args == nil && c.HasSubCommands():
		c.Args = anyCommand
		if c.RunE == nil && c.Run == nil {
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	default:
		c.Args = func(c *cobra.Command, given []string) error {
			if err := flagForValue(c); err != nil {
				return err
			}
			if args != nil && args(c, given) != nil {
				return wrongArguments(c, given)
			}
			return emptyArgument(c, given)
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}
