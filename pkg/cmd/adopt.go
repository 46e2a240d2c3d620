package cmd

import (
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/adopt"
	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

func newAdoptCmd(f *factory) *cobra.Command {
	var o adopt.Options
	var dryRun bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Look at a Flux repo with Cluster API objects in it, and write the fleet.yaml for it",
		Long: `Look at a repo that was there before fleetctl: one that Flux follows, with objects of Cluster API in it. It says what it understands, and
writes the smallest fleet.yaml with which validate, render, diff, status and the lists work there; it changes no other file, no layout and
nothing on a cluster. Clusters that stand in the repo as manifests stay manifests.

A management cluster is found by its Flux: the folder that it applies first is its path in fleet.yaml. How it is reached is not written in a
repo: give its context with --context, here once for all, or to each command that looks at it.

Exit codes: 0 fleet.yaml is written, or would be; 3 nothing there is Cluster API's.`,
		Example: `  fleetctl adopt --dry-run
  fleetctl adopt --context prod-management
  fleetctl validate`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Kubeconfig != "" && o.Context == "" {
				return diag.Usage("name the context in it with --context", "--kubeconfig says nothing about which cluster it is")
			}
			var err error
			if o.Dir, err = f.repoDir(); err != nil {
				return err
			}
			o.CacheDir = f.cacheDir()
			report, err := adopt.Look(c.Context(), o)
			if err != nil {
				return err
			}
			if !dryRun {
				if err := report.Write(); err != nil {
					return err
				}
			}
			return ui.Print(f.streams, f.format, report, func(w io.Writer) error { return adoptView(f, w, report) })
		},
	}
	fs := c.Flags()
	fs.StringVar(&o.Name, "name", "", "name of the fleet (default: that of the repo's folder)")
	fs.StringVar(&o.Context, "context", "", "context of the management cluster, for fleet.yaml")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig that has it, relative to fleet.yaml (default: the one that kubectl would use)")
	fs.BoolVar(&dryRun, "dry-run", false, "write nothing")
	return c
}

// adoptView says what was found; the file itself, where it is not written, is what remains on standard output.
func adoptView(f *factory, w io.Writer, r *adopt.Report) error {
	s := f.streams.Err
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	ui.Fprintf(t, "FLUX BEGINS IN\tVERSION\tKUSTOMIZATIONS\tOBJECTS\tCLUSTERS\tIS\n")
	for i := range r.Flux {
		one := &r.Flux[i]
		is := "management cluster " + one.Name
		if !one.Manages {
			is = "a Flux with nothing of Cluster API's: left out of fleet.yaml"
		}
		ui.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\n", one.Path, orDash(one.Root.Flux), one.Kustomizations, one.Objects, one.Clusters, is)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range r.Providers {
		ui.Fprintf(s, "%s provider %s %s\n", p.Type, p.Name, p.Version)
	}
	if len(r.Clusters) > 0 {
		ui.FprintText(s, "")
		all := clusterTable(r.Clusters)
		if err := all.print(s, f.format, r.Clusters); err != nil {
			return err
		}
	}
	if len(r.Problems) > 0 {
		ui.Fprintf(s, "\n%s not understood, and so not looked at:\n", plain.Count(len(r.Problems), "thing"))
		if err := ui.PrintFindings(f.streams, s, r.Problems); err != nil {
			return err
		}
	}
	if !r.Written {
		_, err := io.WriteString(w, r.Fleet)
		return err
	}
	ui.Fprintf(s, "\n%s is written, and nothing else. Look at it, then: fleetctl validate; fleetctl diff; fleetctl status --context NAME\n", v1alpha1.FileName)
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
