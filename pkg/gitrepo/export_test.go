package gitrepo

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/internal/conversion"
)

// ErrConversion says that a file cannot be brought into a commit, or onto disk, as git would do it.
var ErrConversion = conversion.ErrConversion

// Dir is the top of the working tree.
func (r *Repo) Dir() string { return r.dir }

// Bounds are the bounds on the answers of a server.
type Bounds struct {
	// Refs and Pack are the bytes of a list of references, and of a pack. Places is the number of files and folders.
	Refs, Pack, Places int
}

// SetShelf lowers the size limits of a branch's files for a test: of one file, and of all files.
func SetShelf(t *testing.T, object, all uint64) {
	t.Helper()
	beforeObject, beforeAll := maxObject, maxInMemory
	maxObject, maxInMemory = object, all
	t.Cleanup(func() { maxObject, maxInMemory = beforeObject, beforeAll })
}

// SetBounds lowers the bounds for a test, so that the test need not send as much.
func SetBounds(t *testing.T, to Bounds) {
	t.Helper()
	before := Bounds{maxRefs, maxPack, maxPlaces}
	maxRefs, maxPack, maxPlaces = to.Refs, to.Pack, to.Places
	t.Cleanup(func() { maxRefs, maxPack, maxPlaces = before.Refs, before.Pack, before.Places })
}

// SetSilence lowers the time that a server may keep a test waiting over ssh.
func SetSilence(t *testing.T, limit time.Duration) {
	t.Helper()
	before := silence
	silence = limit
	t.Cleanup(func() { silence = before })
}

// Addresses returns the addresses that the checked out branch is read from and pushed to.
func (r *Repo) Addresses() (read, push string, err error) {
	t, err := r.tracking()
	if err != nil {
		return "", "", err
	}
	return t.url, t.to.url, nil
}

// Author returns the author that git would give a commit in this repository: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else author.name and
// user.name of the configuration, and so on. Without any, the error matches ErrNoAuthor; on a runner (CI is set) the author is fleetctl.
func (r *Repo) Author() (Author, error) {
	all, err := r.settings(context.Background())
	if err != nil {
		return Author{}, err
	}
	return all.who("author")
}

// Commit is CommitOnto for changes that are made from the last commit.
func (r *Repo) Commit(ctx context.Context, changes []Change, message string, author Author) (hash string, made bool, err error) {
	head, err := r.Head()
	if err != nil {
		return "", false, err
	}
	return r.CommitOnto(ctx, head, changes, message, author)
}

// Push pushes the checked out branch, never with force, and tells whether there was anything to push. The error matches
// ErrNonFastForward if the remote has commits that the local branch lacks, ErrNoPushRight or ErrProtectedBranch if the server refuses, or
// one of Probe's errors.
func (r *Repo) Push(ctx context.Context, auth Auth) (bool, error) {
	t, remote, err := r.remote(auth)
	if err == nil {
		err = t.checkPush()
	}
	if err != nil {
		return false, err
	}
	_, head, err := r.head()
	if err != nil || head.IsZero() {
		return false, err
	}
	known, err := r.fetch(ctx, t, remote, head)
	if err != nil || known == head {
		return false, err
	}
	h, err := newHistory(r.git.Storer)
	if err != nil {
		return false, err
	}
	where, err := h.relate(ctx, head, known)
	if err != nil {
		return false, err
	}
	if where != ahead {
		return false, remote.fail("push to", fmt.Errorf("%w: %s of the remote has commits that are not in %s",
			ErrNonFastForward, t.branch, r.dir))
	}
	return true, remote.push(ctx, r, t, head, known)
}
