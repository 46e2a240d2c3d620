package cmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// markdown is the format for a comment on a pull request.
const markdown ui.Format = "markdown"

type diffOptions struct {
	from, to        string
	impact, noCache bool
}

func newDiffCmd(f *factory) *cobra.Command {
	o := &diffOptions{}
	c := &cobra.Command{
		Use:   "diff [REF [REF]]",
		Short: "Show what a change of the fleet repo does to clusters and machines",
		Long: `Show what a change of the fleet repo does. The difference compares the objects that Flux would apply before and after the
change. The impact says it in words: which machines are replaced, which pools are scaled, and which clusters are upgraded, added or deleted.
Flux's own manifests, and long manifests of a network, are summed up; -v shows them.

Without arguments, diff compares the last commit with the files on disk. With one revision, it compares the last commit that the revision
and HEAD have in common with the files on disk, as a pull request does: commits that others have pushed meanwhile do not count. With two
revisions, it compares exactly these.

Exit codes: 0 there is a difference, or none; 3 the newer side cannot be rendered, or a cluster leaves the repo or loses its protection
without the two steps of fleetctl cluster remove. Both steps in one change exit with 3 too, because Flux has to apply the first step
alone.`,
		Example: `  fleetctl diff                                # uncommitted changes
  fleetctl diff origin/main                    # what this branch does
  fleetctl diff --impact v1.4.0 v1.5.0         # in words alone
  fleetctl diff origin/main -o markdown        # a comment for the pull request`,
		Args:        cobra.MaximumNArgs(2),
		Annotations: map[string]string{moreFormats: string(markdown)},
		RunE:        running(f, o, runDiff),
	}
	c.Flags().BoolVar(&o.impact, "impact", false, "only the impact, in words")
	c.Flags().BoolVar(&o.noCache, "no-cache", false, "render everything again, and keep nothing")
	return c
}

func (o *diffOptions) complete(_ *factory, args ...string) error {
	if len(args) > 0 {
		o.from = args[0]
	}
	if len(args) > 1 {
		o.to = args[1]
	}
	return nil
}

func runDiff(ctx context.Context, f *factory, o *diffOptions) error {
	defer confine.CollectLate()()
	dir, err := f.repoDir()
	if err != nil {
		return err
	}
	options := review.DiffOptions{Dir: dir, From: o.from, To: o.to}
	if !o.noCache {
		if options.CacheDir, err = f.cacheDir(); err != nil {
			return err
		}
	}
	report, err := review.Diff(ctx, options)
	if err != nil {
		return err
	}
	if o.impact {
		report.Objects = []review.ObjectChange{}
	}
	if f.format == markdown {
		_, err = io.WriteString(f.streams.Out, report.Markdown())
	} else {
		err = f.show(views.Diff(report, o.impact))
	}
	if err != nil {
		return err
	}
	if n := len(report.LeftProblems()); n > 0 {
		f.report().Warn(plain.Count(n, "problem") + " in the older side: what they are about is shown as new")
	}
	return report.Err()
}
