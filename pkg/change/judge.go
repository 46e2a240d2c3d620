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
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// edit makes the edit in a fleet repo. It fails if a chart refuses its values, or if no cluster would accept its manifests.
func (o Options) edit(ctx context.Context, repo *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	judgeElsewhere(ctx, repo)
	repo.Tagged = taggedIn(repo.WorkTree)
	e, err := o.Edit(repo)
	if err != nil {
		return nil, err
	}
	for _, check := range e.Checks {
		if err := o.judge(ctx, repo, e, check); err != nil {
			return nil, err
		}
	}
	planned, err := e.Changes.Plan(repo.Dir)
	if err != nil {
		return nil, err
	}
	changed := repo.EnvironmentsOf(paths(planned))
	promoted := slices.DeleteFunc(slices.Clone(e.Environments), func(env string) bool { return !slices.Contains(changed, env) })
	_, paused := repo.Paused(e.Environments)
	e.Notes = append(append(e.Notes, repo.Unpromoted(promoted)...), paused...)
	return e, nil
}

// taggedIn returns what finds the files of a tag in the Git repository of a folder.
func taggedIn(dir string) func(tag string) (fs.FS, error) {
	return func(tag string) (fs.FS, error) {
		git, err := gitrepo.Open(dir)
		if errors.Is(err, gitrepo.ErrNotARepository) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		commit, err := git.Resolve("refs/tags/" + tag + "^{commit}")
		if err != nil {
			return nil, err
		}
		return git.Files(commit)
	}
}

func paths(changes []manifest.Change) []string {
	all := make([]string, 0, len(changes))
	for _, c := range changes {
		all = append(all, c.Path)
	}
	return all
}

// judge runs one check of an edit. The check of the order is separate: checkOrder runs it once, right before the edit.
func (o Options) judge(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit, check fleetrepo.Check) error {
	switch check := check.(type) {
	case fleetrepo.RendersCluster:
		return judgeEdit(ctx, repo, e, check.File)
	case fleetrepo.AppliesManifests:
		return judgeAddon(ctx, repo, e, check.Folder)
	case fleetrepo.KeepsClusters:
		return o.judgeCharts(ctx, repo, e, check.Flavours)
	case fleetrepo.FollowsStep:
		return nil
	}
	return fmt.Errorf("check the change: there is no check %T", check)
}

// judgeEdit renders the cluster of a file that an edit changes. If the chart refuses the result, judgeEdit returns an error with the
// chart's own message. If the same error exists without the edit, the edit makes nothing worse, and judgeEdit only adds a note.
func judgeEdit(ctx context.Context, repo *fleetrepo.Repo, e *fleetrepo.Edit, file string) error {
	files := e.Changes.Files()
	i := slices.IndexFunc(files, func(f manifest.File) bool { return f.Path == file })
	if i < 0 {
		return nil
	}
	disk, err := render.Dir(repo.Dir)
	if err != nil {
		return err
	}
	q := declarations{Dirs: []string{repo.Dir}, Files: []declaration{{Path: file, Content: files[i].Content}}}
	src, err := fs.ReadFile(disk, file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		q.Files = append(q.Files, declaration{Path: file, Content: src, OnlyAfterFailure: true})
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
		e.Notes = append(e.Notes, "The chart refuses the values of this cluster, both with and without this change: "+after[0].Summary)
		return nil
	}
	hint := "nothing was written: give values that the chart accepts; its README lists them"
	if before.Err() != nil {
		hint = fmt.Sprintf("nothing was written. The chart refuses the values without this change, too (%s): correct %s in an editor "+
			"first, and check it with `fleetctl validate`",
			before[0].Summary, file)
	}
	for i := range after {
		if after[i].Hint == "" {
			after[i].Hint = hint
		}
	}
	return after
}
