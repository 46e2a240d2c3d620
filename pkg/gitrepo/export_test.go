package gitrepo

import (
	"context"
	"testing"
)

// Bounds are what is taken of a server.
type Bounds struct {
	// Refs and Pack are bytes of a list of references, and of a pack; Places are files and folders.
	Refs, Pack, Places int
}

// SetShelf lowers the bounds of what a branch may hold for a test: of one file, and of all.
func SetShelf(t *testing.T, object, all uint64) {
	t.Helper()
	beforeObject, beforeAll := maxObject, maxInMemory
	maxObject, maxInMemory = object, all
	t.Cleanup(func() { maxObject, maxInMemory = beforeObject, beforeAll })
}

// SetBounds lowers the bounds for a test, in place of sending so much.
func SetBounds(t *testing.T, to Bounds) {
	t.Helper()
	before := Bounds{maxRefs, maxPack, maxPlaces}
	maxRefs, maxPack, maxPlaces = to.Refs, to.Pack, to.Places
	t.Cleanup(func() { maxRefs, maxPack, maxPlaces = before.Refs, before.Pack, before.Places })
}

// Addresses are where the checked out branch is read from and pushed to.
func (r *Repo) Addresses() (read, push string, err error) {
	t, err := r.tracking()
	if err != nil {
		return "", "", err
	}
	return t.url, t.to.url, nil
}

// Author is who git would say that a commit in this repository is by: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else author.name and user.name
// of the configuration, and so on. The error matches ErrNoAuthor and says what to do; on a runner (CI is set) it is fleetctl then.
func (r *Repo) Author() (Author, error) {
	all, err := r.settings(context.Background())
	if err != nil {
		return Author{}, err
	}
	return all.who("author")
}
