package cmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// listFormats lets a command take the formats of lists, besides those of every command.
func listFormats(c *cobra.Command) *cobra.Command {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[moreFormats] = strings.TrimSpace(c.Annotations[moreFormats] + " " + string(ui.Wide) + " " + string(ui.Name))
	return c
}

// refuseListFormat returns a usage error for a format of lists on the command line of a run that lists nothing. hint says which run lists.
// Such a format from the environment or the configuration file is for the lists, so the run takes the format for people.
func (f *factory) refuseListFormat(hint string) error {
	if f.format != ui.Wide && f.format != ui.Name {
		return nil
	}
	if f.settings.FromOutside("output") {
		f.format = ui.Human
		return nil
	}
	return diag.Usage(hint+", or choose another format", "--output %s is for lists", string(f.format))
}

// completeFormats completes the value of --output.
func completeFormats(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return append(slices.Clone(ui.Formats), strings.Fields(c.Annotations[moreFormats])...), cobra.ShellCompDirectiveNoFileComp
}

// newListCmd is `fleetctl NOUN list`, which lists the objects of one kind in the fleet repo.
func newListCmd[T any](
	f *factory,
	noun, short string,
	list func(*fleetrepo.Repo) ([]T, error),
	view func(all []T) views.View,
) *cobra.Command {
	return listFormats(&cobra.Command{
		Use:     "list",
		Short:   short,
		Example: "  fleetctl " + noun + " list -o json",
		Args:    cobra.NoArgs,
		RunE:    running(f, &listOptions[T]{list: list, view: view}, runList),
	})
}

// listOptions are the options of a command of newListCmd: the function that lists, and the view.
type listOptions[T any] struct {
	asGiven
	list func(*fleetrepo.Repo) ([]T, error)
	view func(all []T) views.View
}

func runList[T any](_ context.Context, f *factory, o *listOptions[T]) error {
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	all, err := o.list(repo)
	if err != nil {
		return err
	}
	return f.show(o.view(all))
}
