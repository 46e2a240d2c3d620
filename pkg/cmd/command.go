package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/progress"
)

// options are the options of one command. Flags are bound to their fields. complete checks them together with the arguments, and
// completes missing values from the environment, a file that a flag names, the fleet repo, or a question at a terminal. It has no
// context, because it contacts no cluster and no server. It changes nothing.
type options interface {
	complete(f *factory, args ...string) error
}

// running returns the RunE of a command. It refuses flags that would have no effect, and names in flags that nothing has. Then it calls
// complete, and run. run calls one function of a workflow and gives its result to a view.
func running[O options](f *factory, o O, run func(ctx context.Context, f *factory, o O) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		f.command = c
		if err := refuseIdle(f, c); err != nil {
			return err
		}
		if err := f.checkManagement(); err != nil {
			return err
		}
		if err := f.checkNames(c, args); err != nil {
			return f.notEditable(c.Context(), err)
		}
		if err := o.complete(f, args...); err != nil {
			return f.notEditable(c.Context(), err)
		}
		if f.completed != nil {
			f.completed(o)
			return nil
		}
		return f.notEditable(c.Context(), run(progress.WithWaits(c.Context(), f.report().Await), f, o))
	}
}

// asGiven is embedded in options that need no completing.
type asGiven struct{}

func (asGiven) complete(*factory, ...string) error { return nil }

// named is embedded in options whose one argument is a name.
type named struct{ name string }

func (n *named) complete(_ *factory, args ...string) error {
	n.name = args[0]
	return nil
}
