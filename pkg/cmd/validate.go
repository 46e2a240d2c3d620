package cmd

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/validate"
)

func newValidateCmd(f *factory) *cobra.Command {
	var o validate.Options
	var listRules bool
	c := &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Find all that is wrong with the fleet repo",
		Long: `Find, all at once, what a reviewer of the fleet repo cannot see: it reads every file, builds what Flux would build, renders every cluster's
chart with its values, judges every object by the schema and the rules of its CRD, follows every reference, and holds the repo to the rules of
its layout. It needs no cluster. With paths only what is wrong in them is shown, and the whole repo is looked at all the same.

The CRDs come from the repo and from the providers that fleet.yaml names: from --bundle, else over the network, once; then they are kept.
Each rule has a name and a description in docs/validation.md; a comment silences it in place: # fleetctl:ignore RULE reason

It exits with 3 where there is an error. -o sarif is for code scanning, -o github makes annotations in a GitHub workflow.`,
		Example: `  fleetctl validate
  fleetctl validate --strict -o github      # in a workflow
  fleetctl validate providers/aws -o json
  fleetctl validate --rules`,
		Annotations: map[string]string{moreFormats: string(ui.SARIF) + " " + string(ui.GitHub)},
		RunE: func(c *cobra.Command, args []string) error {
			if listRules {
				return printRules(f)
			}
			var err error
			if o.Dir, err = f.repoDir(); err != nil {
				return err
			}
			o.CacheDir, o.Paths = f.cacheDir(), args
			result, err := validate.Run(c.Context(), o)
			if err != nil {
				return err
			}
			if err := printValidation(f, result); err != nil {
				return err
			}
			if result.Errors > 0 {
				return silent()
			}
			return nil
		},
	}
	fs := c.Flags()
	fs.BoolVar(&o.Strict, "strict", false, "make errors of warnings")
	fs.StringSliceVar(&o.CRDs, "crds", nil, "folder or file with CRDs, which win over all others (repeatable)")
	fs.StringVar(&o.Bundle, "bundle", "", "offline bundle that the providers' CRDs come from (folder or .tar.zst)")
	fs.BoolVar(&o.Offline, "offline", false, "fetch nothing over the network")
	fs.BoolVar(&o.LocalReleases, "local-releases", false, "read providers whose url in fleet.yaml is a place of this machine; otherwise nothing outside the fleet repo is read")
	fs.BoolVar(&listRules, "rules", false, "list the rules and look at nothing")
	return c
}

func printValidation(f *factory, r *validate.Result) error {
	switch f.format { //nolint:exhaustive // the others are those of every command
	case ui.SARIF:
		return ui.PrintSARIF(f.streams.Out, r.Prefix, validate.Rules(), r.Findings)
	case ui.GitHub:
		return ui.PrintAnnotations(f.streams.Out, r.Prefix, r.Findings)
	}
	return ui.Print(f.streams, f.format, r, func(w io.Writer) error {
		if err := ui.PrintFindings(f.streams, w, r.Findings); err != nil {
			return err
		}
		ui.Fprintf(f.streams.Err, "%s in %s, %s and %s\n", tally(r), plain.Count(r.Files, "file"), plain.Count(r.Clusters, "cluster"), plain.Count(r.Objects, "object"))
		return nil
	})
}

// tally says how many findings there are.
func tally(r *validate.Result) string {
	text := plain.Count(r.Errors, "error") + ", " + plain.Count(r.Warnings, "warning")
	if r.Errors+r.Warnings == 0 {
		text = "Nothing is wrong"
	}
	if r.Ignored > 0 {
		text += fmt.Sprintf(" (%d silenced)", r.Ignored)
	}
	return text
}

func printRules(f *factory) error {
	result := struct {
		FormatVersion string      `json:"formatVersion"`
		Rules         []diag.Rule `json:"rules"`
	}{"1", validate.Rules()}
	return ui.Print(f.streams, f.format, result, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range result.Rules {
			ui.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.Severity, r.Summary)
		}
		return t.Flush()
	})
}
