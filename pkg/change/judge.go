package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// edit makes the edit in a fleet repo, and refuses one whose values the chart refuses, or whose manifests no cluster would take.
func (o Options) edit(ctx context.Context, repo *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	judgeElsewhere(ctx, repo)
	e, err := o.Edit(repo)
	if err != nil {
		return nil, err
	}
	if e.Renders != "" {
		err = judgeEdit(ctx, repo, e)
	}
	if err == nil && e.Applies != "" {
		err = judgeAddon(ctx, repo, e)
	}
	if err == nil && len(e.Charts) > 0 {
		err = o.judgeCharts(ctx, repo, e)
	}
	if err != nil {
		return nil, err
	}
	e.Notes = append(e.Notes, repo.Unpromoted(e.Environments)...)
	return e, nil
}

// judgeEdit renders the cluster that an edit changes as it would be. What its chart refuses is an error with the chart's own words. Where they
// are the same without the edit, it makes nothing worse: then a note says so.
func judgeEdit(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit) error {
	files := e.Changes.Files()
	i := slices.IndexFunc(files, func(f manifest.File) bool { return f.Path == e.Renders })
	if i < 0 {
		return nil
	}
	disk, err := render.Dir(repo.Dir)
	if err != nil {
		return err
	}
	q := declarations{Dirs: []string{repo.Dir}, Files: []declaration{{Path: e.Renders, Content: files[i].Content}}}
	src, err := fs.ReadFile(disk, e.Renders)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		q.Files = append(q.Files, declaration{Path: e.Renders, Content: src, OnlyAfterFailure: true})
	}
	found, err := DeclaredTask.Run(ctx, q, confine.Needs{Read: q.Dirs})
	if err != nil {
		return err
	}
	after := found[0].Findings
	if after.Err() == nil {
		return nil
	}
	var before diag.Findings
	if len(found) > 1 {
		before = found[1].Findings
	}
	if slices.EqualFunc(before, after, func(a, b diag.Finding) bool { return a.Summary == b.Summary }) {
		e.Notes = append(e.Notes, "The chart refuses the values of this cluster, with this change as without it: "+after[0].Summary)
		return nil
	}
	hint := "nothing was written: give values that the chart takes; its README lists them"
	if before.Err() != nil {
		hint = fmt.Sprintf("nothing was written. Without this change the chart refuses the values as well (%s): put %s right in an editor first, `fleetctl validate` looks at it",
			before[0].Summary, e.Renders)
	}
	for i := range after {
		if after[i].Hint == "" {
			after[i].Hint = hint
		}
	}
	return after
}
