package cmd

import (
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/version"
)

func newVersionCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of fleetctl and of the libraries it embeds",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			return ui.Print(f.streams, f.format, info, func(w io.Writer) error { return versionView(w, info) })
		},
	}
}

func versionView(w io.Writer, info version.Info) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	ui.Fprintf(t, "fleetctl\t%s\n", info.Version)
	if info.Commit != "" {
		ui.Fprintf(t, "commit\t%s\n", info.Commit)
	}
	ui.Fprintf(t, "go\t%s %s\n", info.Go, info.Platform)
	names := make([]string, 0, len(info.Libraries))
	for name := range info.Libraries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ui.Fprintf(t, "%s\t%s\n", name, info.Libraries[name])
	}
	return t.Flush()
}
