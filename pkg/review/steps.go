package review

import (
	"cmp"
	"context"
	"io/fs"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// bothSteps is the message about a cluster if the compared range has both steps of its removal. Flux looks at the
// annotations of the objects on the cluster. If Flux has not applied the first step, these objects are still protected,
// whatever the last commit in Git says.
const bothSteps = "both steps of fleetctl cluster remove are in this range: where Flux applies the first one alone, the second one " +
	"deletes it; where it does not, it goes on to run" + nobodyLooks

// findSteps looks in the compared commits for the first steps of removals whose second step the comparison shows. It
// reads the history only if a cluster leaves the repo that would continue to run.
func (r *Report) findSteps(ctx context.Context, git *gitrepo.Repo) error {
	var commits []gitrepo.Commit
	for n := range r.Impact {
		i := &r.Impact[n]
		if i.Kind != ImpactDeleteCluster || !i.Runs || i.File == "" {
			continue
		}
		if commits == nil {
			var err error
			if commits, err = r.commits(ctx, git); err != nil || len(commits) == 0 {
				return err
			}
		}
		found, err := prepared(git, commits, i.File)
		if err != nil {
			return err
		}
		if found {
			i.BothSteps, i.Reason = true, bothSteps
			i.Summary = i.words()
		}
	}
	return nil
}

// commits are the commits of the newer side that the older side lacks, newest first. If a shallow clone lacks some of them, it returns
// none.
func (r *Report) commits(ctx context.Context, git *gitrepo.Repo) ([]gitrepo.Commit, error) {
	head, err := git.Resolve("HEAD")
	if err != nil {
		return nil, err
	}
	commits, err := git.Log(ctx, cmp.Or(r.To, head), r.From)
	if err != nil {
		return nil, ctx.Err() // the difference is shown without the history
	}
	return commits, nil
}

// prepared tells whether a cluster's file, right before its deletion, has the mark of the first step.
func prepared(git *gitrepo.Repo, commits []gitrepo.Commit, file string) (bool, error) {
	for _, c := range commits {
		if _, touched := slices.BinarySearch(c.Files, file); !touched {
			continue
		}
		files, err := git.Files(c.Hash)
		if err != nil {
			return false, err
		}
		content, err := fs.ReadFile(files, file)
		if err != nil {
			continue // the commit that deletes the file
		}
		documents, err := yamledit.ParseWithin(content, render.Limits)
		if err != nil {
			return false, nil //nolint:nilerr // what cannot be read announces nothing
		}
		for _, d := range documents {
			if kind := yamledit.Find(d, "kind"); kind == nil || kind.Value != render.KindHelmRelease {
				continue
			}
			if mark := yamledit.Find(d, "metadata", "annotations", removeAnnotation); mark != nil && mark.Value != "" {
				return true, nil
			}
		}
		return false, nil
	}
	return false, nil
}
