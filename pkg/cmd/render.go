package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

type renderOptions struct {
	cluster, environment, outputDir string
	noCache                         bool
}

func newRenderCmd(f *factory) *cobra.Command {
	var o renderOptions
	c := &cobra.Command{
		Use:   "render [CLUSTER]",
		Short: "Print what Flux would apply",
		Long: `Print what Flux would apply: of the whole fleet, of one environment or of one cluster. It follows the Flux Kustomizations from each
management cluster's folder, builds them as kustomize-controller does, and renders the HelmReleases whose charts are in the repo as
helm-controller does. It needs no cluster, no network and no other program.

Files are taken as they are on disk, also where an environment follows a tag. Secrets are printed as they stand in the repo; values that
come from a Secret are not known here, and a warning says where one is missing. What was rendered is kept by content, so that the next
run renders what has changed.

Exit codes: 0 all could be rendered; 3 some could not: the others are printed, and what is wrong is on standard error.`,
		Example: `  fleetctl render                          # one YAML stream
  fleetctl render shop                     # one cluster
  fleetctl render --environment prod -o json | jq -r '.objects[].object.kind'
  fleetctl render --output-dir rendered    # one file for each object`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeFrom(0, clusterNames),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.cluster = args[0]
			}
			return runRender(c, f, &o)
		},
	}
	c.Flags().StringVar(&o.environment, "environment", "", "only this environment")
	c.Flags().StringVar(&o.outputDir, "output-dir", "", "write one file for each object into this folder, and remove what an earlier run has written there and is no more")
	c.Flags().BoolVar(&o.noCache, "no-cache", false, "render everything anew, and keep nothing")
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

// renderResult is the result of render for a program.
type renderResult struct {
	FormatVersion string           `json:"formatVersion"`
	Objects       []renderedObject `json:"objects"`
	Problems      diag.Findings    `json:"problems"`
}

type renderedObject struct {
	ManagementCluster string          `json:"managementCluster"`
	Environment       string          `json:"environment,omitempty"`
	Cluster           string          `json:"cluster,omitempty"`
	Targets           []string        `json:"targets,omitempty"`
	Owner             render.Owner    `json:"owner"`
	GitSource         string          `json:"gitSource"`
	Source            render.Source   `json:"source"`
	Template          string          `json:"template,omitempty"`
	Suspended         bool            `json:"suspended,omitempty"`
	Object            json.RawMessage `json:"object"`
}

func runRender(c *cobra.Command, f *factory, o *renderOptions) error {
	if o.cluster != "" && o.environment != "" {
		return diag.Usage("name the cluster as environment/name", "give a cluster or --environment, not both")
	}
	dir, err := f.repoDir()
	if err != nil {
		return err
	}
	defer confine.CollectLate()()
	options := review.RenderOptions{Dir: dir, Cluster: o.cluster, Environment: o.environment}
	if !o.noCache {
		options.CacheDir = f.cacheDir()
	}
	result, err := review.Render(c.Context(), options)
	if err != nil {
		return err
	}
	if o.outputDir != "" {
		err = writeRendered(f, o.outputDir, result)
	} else {
		err = ui.Print(f.streams, f.format, forPrograms(f.format, result), func(w io.Writer) error { return renderView(w, result) })
	}
	if err != nil {
		return err
	}
	return problems(f, result.Findings)
}

// problems warns of findings that are no errors, and returns those that are.
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
	return &diag.Error{Err: errs, Hint: "what these are about is missing from the result", Code: diag.ExitNotReady}
}

// writeRendered writes the tree, unless something could not be rendered: its files would be gone from it.
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

// forPrograms is the result as JSON and YAML have it.
func forPrograms(format ui.Format, result *render.Result) *renderResult {
	if format == ui.Human {
		return nil
	}
	out := &renderResult{FormatVersion: "1", Objects: make([]renderedObject, 0, len(result.Objects)), Problems: append(diag.Findings{}, result.Findings...)}
	for _, o := range result.Objects {
		out.Objects = append(out.Objects, renderedObject{
			ManagementCluster: o.ManagementCluster, Environment: o.Environment, Cluster: o.Cluster, Targets: o.Targets, Owner: o.Owner,
			GitSource: o.GitSource, Source: o.Source, Template: o.Template, Suspended: o.Suspended, Object: o.JSON,
		})
	}
	return out
}

// writeAt is how much is put together before it is written: a pipe takes so much at once.
const writeAt = 64 << 10

// renderView is one YAML stream; a comment says where each object comes from.
func renderView(w io.Writer, result *render.Result) error {
	buffer := make([]byte, 0, 2*writeAt)
	for _, o := range result.Objects {
		buffer = append(buffer, "---\n# "...)
		buffer = append(buffer, plain.Line(origin(o))...)
		buffer = append(buffer, '\n')
		if buffer = render.AppendYAML(buffer, o.JSON); len(buffer) < writeAt {
			continue
		}
		if _, err := w.Write(buffer); err != nil {
			return err
		}
		buffer = buffer[:0]
	}
	_, err := w.Write(buffer)
	return err
}

func origin(o *render.Object) string {
	from := o.Source.File
	if o.Template != "" {
		from = o.Template + ", by " + o.Source.File
	}
	if len(o.Targets) == 1 {
		return from + ", on " + o.Targets[0]
	}
	if len(o.Targets) > 1 {
		return fmt.Sprintf("%s, on %d clusters", from, len(o.Targets))
	}
	return from
}
