package validate

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
)

// commitsSince are the commits of HEAD that a revision lacks, newest first. Without a revision there are none.
func commitsSince(ctx context.Context, dir, revision string) ([]gitrepo.Commit, error) {
	if revision == "" {
		return nil, nil
	}
	top := strings.TrimSuffix(filepath.ToSlash(dir), "/"+gitPrefix(dir))
	repo, err := gitrepo.OpenFor("validate the commits since "+revision, filepath.FromSlash(top), "leave --commits-since out")
	if err != nil {
		return nil, err
	}
	base, err := repo.Resolve(revision)
	if err != nil {
		return nil, err
	}
	head, err := repo.Head()
	if err != nil || head == "" {
		return nil, err
	}
	return repo.Subjects(ctx, head, base)
}

// checkCommits holds the subjects of commits to the fleet's convention. Merges are left out, because forges and git write their subjects.
func checkCommits(fleet *v1alpha1.Fleet, commits []gitrepo.Commit) (findings diag.Findings) {
	if fleet.Spec.Releases.Commits != v1alpha1.ConventionalCommits {
		return nil
	}
	for _, c := range commits {
		if _, ok := v1alpha1.ParseConventionalCommit(c.Subject); ok || c.Merge {
			continue
		}
		findings = append(findings, finding(RuleCommit, v1alpha1.FileName, 0, 0,
			fmt.Sprintf("the subject of commit %.8s is %.80q, and spec.releases.commits wants \"type: description\"", c.Hash, c.Subject),
			"reword it: `git rebase -i`, or `git commit --amend` for the newest one; the types are "+strings.Join(v1alpha1.CommitTypes(), ", ")))
	}
	return findings
}
