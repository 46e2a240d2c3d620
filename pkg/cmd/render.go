package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

type renderOptions struct {
	cluster, environment, outputDir string
	noCache                         bool
}

func newRenderCmd(f *factory) *cobra.Command {
	o := &renderOptions{}
	c := &cobra.Command{
		Use:   "render [CLUSTER]",
		Short: "Print what Flux would apply",
		Long: `Print the objects that Flux would apply: of the whole fleet, of one environment or of one cluster. The command follows the
Flux Kustomizations from each management cluster's folder, builds them as kustomize-controller does, and renders the HelmReleases whose
charts are in the repo as helm-controller does. It needs no cluster, no network and no other program.

render takes the files as they are on disk, also if an environment follows a tag. It prints Secrets as they are in the repo. Values that
come from a Secret are unknown here, and a warning says where one is missing. Results are cached by content, so that the next run renders
only what has changed.

Exit codes: 0 everything could be rendered; 3 some objects could not: the others are printed, and the errors are on standard error.`,
		Example: `  fleetctl render                          # one YAML stream
  fleetctl render shop                     # one cluster
  fleetctl render --environment prod -o json | jq -r '.objects[].object.kind'
  fleetctl render --output-dir rendered    # one file for each object`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeDeclared,
		RunE:              running(f, o, runRender),
	}
	c.Flags().StringVar(&o.environment, "environment", "", "only this environment")
	c.Flags().StringVar(&o.outputDir, "output-dir", "",
		"write one file for each object into this folder, and remove outdated files of an earlier run")
	c.Flags().BoolVar(&o.noCache, "no-cache", false, "render everything again, and keep nothing")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

func (o *renderOptions) complete(_ *factory, args ...string) error {
	if len(args) == 1 {
		o.cluster = args[0]
	}
	if o.cluster != "" && o.environment != "" {
		return diag.Usage("name the cluster as environment/name", "give a cluster or --environment, not both")
	}
	return nil
}

func runRender(ctx context.Context, f *factory, o *renderOptions) error {
	dir, err := f.repoDir()
	if err != nil {
		return err
	}
	defer confine.CollectLate()()
	options := review.RenderOptions{Dir: dir, Cluster: o.cluster, Environment: o.environment}
	if !o.noCache {
		if options.CacheDir, err = f.cacheDir(); err != nil {
			return err
		}
	}
	result, err := review.Render(ctx, options)
	if err != nil {
		return err
	}
	if o.outputDir != "" {
		err = writeRendered(f, o.outputDir, result)
	} else {
		err = f.show(views.Rendered(result))
	}
	if err != nil {
		return err
	}
	return problems(f, result.Findings)
}

// problems prints findings that are not errors as warnings, and returns the errors.
func problems(f *factory, findings diag.Findings) error {
	errs := diag.Findings{}
	for _, finding := range findings {
		if finding.Severity == diag.SeverityError {
			errs = append(errs, finding)
			continue
		}
		f.report().Warn(finding.String())
	}
	if len(errs) == 0 {
		return nil
	}
	return &diag.Error{Err: errs, Hint: "the objects of these errors are missing from the result", Code: diag.ExitNotReady}
}

// writeRendered writes the tree. It refuses to if an object could not be rendered, because that object's files would then be removed.
func writeRendered(f *factory, dir string, result *render.Result) error {
	if err := problems(f, result.Findings); err != nil {
		return err
	}
	written, err := review.WriteDir(dir, result.Objects)
	if err != nil {
		return err
	}
	ui.Fprintf(f.streams.Err, "%s in %s: %d written, %d removed.\n", plain.Count(written.Files, "file"), dir, written.Changed, written.Removed)
	return nil
}
