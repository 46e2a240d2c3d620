package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/validate"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	validate.Options
	listRules bool
}

func newValidateCmd(f *factory) *cobra.Command {
	o := &validateOptions{}
	c := listFormats(&cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Find all mistakes in the fleet repo",
		Long: `Find the mistakes in a fleet repo that a reviewer cannot see, all at once. validate reads every file, builds the Flux
Kustomizations, and renders every cluster's chart with its values. It checks every object against the schema and the rules of its CRD,
follows every reference, and checks the layout of the repo. It needs no cluster. With paths, it still checks the whole repo, but shows only
the findings in these paths.

It also renders the charts of features that are in --bundle, or in the cache, where ` + "`fleetctl lock`" + ` puts them. For any other chart a
line says that it was not rendered; --fetch-charts fetches it.

The CRDs come from the repo and from the providers in fleet.yaml. The providers' CRDs come from --bundle, or over the network; they are
downloaded once and then cached. Each rule has a name and a description in docs/validation.md; a comment silences it in place: #
fleetctl:ignore RULE reason

validate exits with 3 if there is an error. -o sarif is for code scanning, -o github makes annotations in a GitHub workflow.`,
		Example: `  fleetctl validate
  fleetctl validate --strict -o github      # in a workflow
  fleetctl validate providers/aws -o json
  fleetctl validate --rules`,
		Annotations: map[string]string{moreFormats: string(ui.SARIF) + " " + string(ui.GitHub)},
		RunE:        running(f, o, runValidate),
	})
	fs := c.Flags()
	fs.BoolVar(&o.Strict, "strict", false, "treat warnings as errors")
	fs.StringSliceVar(&o.CRDs, "crds", nil, "folder or file with CRDs, which win over all others (repeatable)")
	fs.StringVar(&o.Bundle, "bundle", "", "offline bundle that the providers' CRDs and the charts of features come from (folder or .tar.zst)")
	fs.BoolVar(&o.FetchCharts, "fetch-charts", false,
		"fetch charts of features that are neither in the bundle nor in the cache over the network")
	fs.BoolVar(&o.Offline, "offline", false, "fetch nothing over the network")
	fs.BoolVar(&o.LocalReleases, "local-releases", false,
		"read providers whose url in fleet.yaml is a place of this machine; otherwise nothing outside the fleet repo is read")
	fs.StringVar(&o.CommitsSince, "commits-since", "",
		"revision, such as origin/main: check the subjects of the commits since then, if fleet.yaml has spec.releases.commits")
	fs.BoolVar(&o.listRules, "rules", false, "list the rules, and check nothing")
	return c
}

func (o *validateOptions) complete(f *factory, args ...string) (err error) {
	if o.Paths = args; o.listRules && len(args) > 0 {
		return diag.Usage("leave one of them out", "--rules lists all rules and checks nothing, and %s was named", args[0])
	}
	if !o.listRules {
		if err := f.refuseListFormat("add --rules, which lists the rules"); err != nil {
			return err
		}
	}
	if o.FetchCharts && o.Offline {
		return diag.Usage("leave one of them out", "--fetch-charts needs the network, and --offline forbids it")
	}
	if o.CacheDir, err = f.cacheDir(); err != nil {
		return err
	}
	o.Dir, err = f.repoDir()
	return err
}

func runValidate(ctx context.Context, f *factory, o *validateOptions) error {
	if o.listRules {
		return f.show(views.Rules(validate.Rules()))
	}
	result, err := validate.Run(ctx, o.Options)
	if err != nil {
		return err
	}
	if err := f.show(views.Validation(result)); err != nil {
		return err
	}
	if result.Errors > 0 {
		return silent()
	}
	return nil
}
