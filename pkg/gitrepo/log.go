package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Commit is one commit of the history.
type Commit struct {
	// Hash as 40 hexadecimal digits.
	Hash string
	// Subject is the first line of its message.
	Subject string
	// Author is the name of the author, and When the time at which the commit was made.
	Author string
	When   time.Time
	// Breaking says that a footer of its message tells of a breaking change, as Conventional Commits write it.
	Breaking bool
	// Files are the files that differ from the first parent, sorted. Subjects leaves them out.
	Files []string
	// Merge says that the commit has several parents.
	Merge bool
}

// breaking begins the footer of a breaking change: https://www.conventionalcommits.org/en/v1.0.0/#specification, 12 and 16.
var breaking = regexp.MustCompile(`(?m)^BREAKING[ -]CHANGE: `)

func commitOf(c *object.Commit) Commit {
	subject, _, _ := strings.Cut(c.Message, "\n")
	return Commit{
		Hash: c.Hash.String(), Subject: subject, Author: c.Author.Name, When: c.Author.When, Breaking: breaking.MatchString(c.Message),
		Merge: len(c.ParentHashes) > 1,
	}
}

// Subjects is Log without the files of the commits, which take most of the time.
func (r *Repo) Subjects(ctx context.Context, tip, base string) ([]Commit, error) {
	_, commits, err := r.between(ctx, tip, base)
	all := make([]Commit, 0, len(commits))
	for _, c := range commits {
		all = append(all, commitOf(c))
	}
	return all, err
}

func (r *Repo) between(ctx context.Context, tip, base string) (*history, []*object.Commit, error) {
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return nil, nil, fmt.Errorf("read the history of %s: %w", r.dir, err)
	}
	commits, err := h.between(ctx, plumbing.NewHash(tip), plumbing.NewHash(base))
	if err != nil {
		return nil, nil, fmt.Errorf("read the history of %s: %w", r.dir, err)
	}
	return h, commits, nil
}

// Log returns the commits of tip that base lacks, newest first. An empty base means all commits of tip. Both are full hashes of commits in
// this repository.
func (r *Repo) Log(ctx context.Context, tip, base string) ([]Commit, error) {
	h, commits, err := r.between(ctx, tip, base)
	if err != nil {
		return nil, err
	}
	all := make([]Commit, 0, len(commits))
	for _, c := range commits {
		files, err := r.changed(ctx, h, c)
		if err != nil {
			return nil, fmt.Errorf("read commit %s: %w", c.Hash, err)
		}
		one := commitOf(c)
		one.Files = files
		all = append(all, one)
	}
	return all, nil
}

func (r *Repo) changed(ctx context.Context, h *history, c *object.Commit) ([]string, error) {
	from := plumbing.ZeroHash
	if parents := h.parents(c); len(parents) > 0 {
		var err error
		if from, err = treeOf(r.git.Storer, parents[0]); err != nil {
			return nil, err
		}
	}
	changes, err := diffTrees(ctx, r.git.Storer, from, c.TreeHash)
	files := make([]string, 0, len(changes))
	for _, change := range changes {
		files = append(files, change.path)
	}
	return files, err
}

// Differ returns the files that differ between two commits, sorted. Both are full hashes of commits in this repository.
func (r *Repo) Differ(ctx context.Context, a, b string) ([]string, error) {
	from, err := treeOf(r.git.Storer, plumbing.NewHash(a))
	if err != nil {
		return nil, err
	}
	to, err := treeOf(r.git.Storer, plumbing.NewHash(b))
	if err != nil {
		return nil, err
	}
	changes, err := diffTrees(ctx, r.git.Storer, from, to)
	files := make([]string, 0, len(changes))
	for _, change := range changes {
		files = append(files, change.path)
	}
	return files, err
}

// Resolve returns the commit of a revision, as 40 hexadecimal digits. A revision is a branch, a tag, a hash or its beginning, or an
// expression such as HEAD~1. If there is no such commit, the error is a usage error that matches ErrNoRevision.
func (r *Repo) Resolve(revision string) (string, error) {
	hash, err := r.git.ResolveRevision(plumbing.Revision(revision))
	if err == nil && hash != nil {
		return hash.String(), nil
	}
	hint := "`git fetch` brings what others have pushed"
	shallow, _ := r.Shallow() // without an answer, the revision is missing all the same
	if shallow {
		hint = "this clone has only the newest commits: `git fetch --unshallow` brings the others (GitHub Actions: fetch-depth: 0)"
	}
	// For HEAD~9 in a history of eight commits, go-git returns io.EOF. In a shallow clone of eight commits, it finds no object.
	if errors.Is(err, plumbing.ErrReferenceNotFound) || errors.Is(err, io.EOF) || err == nil ||
		shallow && errors.Is(err, plumbing.ErrObjectNotFound) {
		return "", &diag.Error{Err: fmt.Errorf("%w: %s in %s", ErrNoRevision, revision, r.dir), Hint: hint, Code: diag.ExitUsage}
	}
	return "", fmt.Errorf("find the revision %s in %s: %w", revision, r.dir, err)
}

// ErrNoRevision says that the repository has no such commit, branch or tag.
var ErrNoRevision = errors.New("no such revision")
