package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newDoctorCmd(f *factory) *cobra.Command {
	o := &initOptions{}
	runCommands := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine and the fleet repo are fit for init",
		Long: `Run the checks that init runs before it creates anything: the container engine, cgroups and inotify limits, disk, ports, the
Git remote and the right to push to it, the variables that the providers need, and names that are taken. Each failure comes with its fix.

A fleet repo can name commands: those that variables of providers come from, and those of a kubeconfig in it. They are run only with
--run-commands. Nor is a token sent to the server that fleet.yaml names without it, where the clone comes from another one.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.complete(f); err != nil {
				return err
			}
			deps, err := f.deps()
			if err != nil {
				return err
			}
			o.NoCommands = !runCommands
			report, err := lifecycle.Doctor(c.Context(), deps, o.InitOptions)
			if err != nil {
				return err
			}
			if err := ui.Print(f.streams, f.format, report, func(w io.Writer) error { return doctorView(f.streams, w, report) }); err != nil {
				return err
			}
			if report.Failed > 0 {
				return silent()
			}
			return nil
		},
	}
	o.addFlags(f, c)
	// As the other commands that look at a management cluster call them.
	c.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of an existing host (also: --host-kubeconfig)")
	c.Flags().StringVar(&o.Context, "context", "", "context of an existing host (also: --host-context)")
	c.Flags().BoolVar(&runCommands, "run-commands", false, "run the commands of fleet.yaml that variables come from, and those of a kubeconfig in the fleet repo; send tokens to whatever server it names")
	return c
}

func doctorView(s ui.Streams, w io.Writer, r *lifecycle.DoctorReport) error {
	for _, check := range r.Checks {
		ui.Fprintf(w, "%s %s  %s\n", checkMark(s, check.Status), check.Name, check.Summary)
		if check.Hint != "" {
			ui.Fprintf(w, "    %s\n", check.Hint)
		}
	}
	_, err := ui.Fprintf(w, "\n%s, %d failed, %s\n", plain.Count(len(r.Checks), "check"), r.Failed, plain.Count(r.Warned, "warning"))
	return err
}

func checkMark(s ui.Streams, status preflight.Status) string {
	switch status {
	case preflight.StatusOK:
		return ui.Painter(s, ui.Good)("✓")
	case preflight.StatusWarn:
		return ui.Painter(s, ui.Warn)("!")
	case preflight.StatusFail:
		return ui.Painter(s, ui.Bad)("✗")
	case preflight.StatusSkip:
	}
	return ui.Painter(s, ui.Dim)("-")
}
