package change

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// judgeCharts renders the clusters of the charts that an edit changes, before and after the edit. It adds a note for each cluster that the
// charts would no longer accept, with the chart's own message. It then refuses an edit that goes to the clusters without a review.
func (o Options) judgeCharts(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit, flavours []string) error {
	broken, judged, err := brokenByCharts(ctx, repo, e, flavours)
	if err != nil || judged == 0 {
		return err
	}
	if len(broken) == 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("Of the clusters of these charts %d rendered before, and none of them breaks.", judged))
		return nil
	}
	if (o.Commit || o.Push) && !o.DryRun && !o.PullRequest {
		for i := range broken {
			broken[i].Hint = "nothing was written: run it without --commit and --push, change the values, and commit both together"
		}
		return broken
	}
	verb := "break"
	if judged == 1 {
		verb = "breaks"
	}
	e.Notes = append(e.Notes, fmt.Sprintf("%d of %s of these charts %s: change the values in the same commit.", len(broken),
		plain.Count(judged, "cluster"), verb))
	for _, f := range broken {
		e.Notes = append(e.Notes, f.String())
	}
	return nil
}

// brokenByCharts returns the clusters that rendered before an edit of their charts and do not render after it, each
// with its first reason. It also returns how many clusters rendered before.
func brokenByCharts(
	ctx context.Context,
	repo *fleetrepo.Repo,
	e *fleetrepo.Edit,
	flavours []string,
) (broken diag.Findings, judged int, err error) {
	clusters, _, err := repo.Clusters() // a file that cannot be read is not the fault of this edit
	if err != nil {
		return nil, 0, err
	}
	clusters = slices.DeleteFunc(clusters, func(c fleetrepo.Cluster) bool { return !slices.Contains(flavours, c.Flavour) })
	if len(clusters) == 0 {
		return nil, 0, nil
	}
	disk, err := render.Dir(repo.Dir)
	if err != nil {
		return nil, 0, err
	}
	dir, remove, err := atomicfile.TempFolder("", "charts")
	if err != nil {
		return nil, 0, fmt.Errorf("render the changed charts: %w", err)
	}
	defer func() { _ = remove() }() // the folder is temporary
	if err := changedCharts(repo, e, flavours, dir); err != nil {
		return nil, 0, fmt.Errorf("render the changed charts: %w", err)
	}
	q := declarations{Dirs: []string{repo.Dir, dir}}
	for _, c := range clusters {
		src, err := fs.ReadFile(disk, c.File)
		if err != nil {
			return nil, 0, err
		}
		q.Files = append(q.Files, declaration{Path: c.File, Content: src}, declaration{Dir: 1, Path: c.File, Content: src})
	}
	found, err := DeclaredTask.Run(ctx, q, confine.Needs{Read: q.Dirs})
	if err != nil {
		return nil, 0, err
	}
	for i := range clusters {
		was, is := found[2*i].Findings, found[2*i+1].Findings
		if was.Err() != nil {
			continue
		}
		judged++
		if at := slices.IndexFunc(is, func(f diag.Finding) bool { return f.Severity == diag.SeverityError }); at >= 0 {
			broken = append(broken, is[at])
		}
	}
	return broken, judged, nil
}

// changedCharts writes the charts of an edit to a folder, as the edit would leave them.
func changedCharts(repo *fleetrepo.Repo, e *fleetrepo.Edit, flavours []string, dir string) error {
	root, err := os.OpenRoot(repo.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, flavour := range flavours {
		chart, err := fs.Sub(root.FS(), path.Join(layout.ChartsDir, flavour))
		if err == nil {
			err = os.CopyFS(filepath.Join(dir, layout.ChartsDir, flavour), chart)
		}
		if err != nil {
			return err
		}
	}
	_, err = e.Changes.Apply(dir)
	return err
}
