package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// places opens the place of a management cluster, of every kind that there is.
func places(t *testing.T) map[string]func(cluster string) (snapshot.Place, error) {
	folder := t.TempDir()
	registry := bundletest.Registry(t)
	remote := gittest.NewHTTPS(t, gittest.Options{})
	guarded := gittest.NewHTTPS(t, gittest.Options{})
	gittest.Git(t, guarded.Dir, "config", "receive.denyNonFastForwards", "true")
	git := func(s *gittest.HTTPS) GitRemote {
		return GitRemote{URL: s.URL, Followed: "main", Auth: func() (gitrepo.Auth, error) {
			return gitrepo.Auth{Username: s.Username, Token: s.Token, CA: s.CA}, nil
		}}
	}
	return map[string]func(string) (snapshot.Place, error){
		"folder": func(cluster string) (snapshot.Place, error) { return OpenPlace(folder, cluster, GitRemote{}) },
		"registry": func(cluster string) (snapshot.Place, error) {
			return OpenPlace("oci://"+registry+"/acme/snapshots", cluster, GitRemote{})
		},
		"branch": func(cluster string) (snapshot.Place, error) {
			return OpenPlace("branch:fleetctl-snapshots", cluster, git(remote))
		},
		"branch that takes no force": func(cluster string) (snapshot.Place, error) {
			return OpenPlace("branch:kept/snapshots", cluster, git(guarded))
		},
	}
}

// Every kind of place keeps to the contract of snapshot.Place.
func TestPlaces(t *testing.T) {
	for name, open := range places(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			place, err := open("mgmt")
			if err != nil {
				t.Fatal(err)
			}
			if ids, err := place.List(ctx); err != nil || len(ids) > 0 {
				t.Fatalf("an empty place has %v, %v", ids, err)
			}
			at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
			id := func(n int) string { return snapshot.NewID(at.Add(time.Duration(n) * time.Hour)) }
			first, second := id(1), id(2)
			if _, err := place.Load(ctx, first); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("one that is not there: %v", err)
			}
			large := bytes.Repeat([]byte("large\x00\xff\n"), 300_000)
			holds(t, place, map[string][]byte{second: []byte("small"), first: large})
			if err := place.Save(ctx, first, []byte("written again")); err != nil {
				t.Fatal(err)
			}
			if content, err := place.Load(ctx, first); err != nil || string(content) != "written again" {
				t.Errorf("%q, %v", content, err)
			}
			other, err := open("other")
			if err != nil {
				t.Fatal(err)
			}
			holds(t, other, map[string][]byte{first: []byte("another's")})
			if err := place.Remove(ctx, first); err != nil {
				t.Fatal(err)
			}
			if err := place.Remove(ctx, first); err != nil {
				t.Errorf("it is gone already: %v", err)
			}
			if ids, err := place.List(ctx); err != nil || !slices.Equal(ids, []string{second}) {
				t.Errorf("%v, %v", ids, err)
			}
			if content, err := other.Load(ctx, first); err != nil || string(content) != "another's" {
				t.Errorf("what another management cluster has: %q, %v", content, err)
			}
			for _, bad := range []string{"../../x", "", "20261001T120000Z-ABCDEF", first + "\n", "latest"} {
				if _, err := place.Load(ctx, bad); err == nil {
					t.Errorf("%q was read", bad)
				}
				if err := place.Remove(ctx, bad); err == nil {
					t.Errorf("%q was removed", bad)
				}
			}
		})
	}
	for name, open := range places(t) {
		for _, cluster := range []string{"..", ".", "a/b", ".hidden", ""} {
			if _, err := open(cluster); err == nil {
				t.Errorf("%s: a management cluster called %q", name, cluster)
			}
		}
	}
}

// holds saves snapshots, side by side, and finds them again.
func holds(t *testing.T, place snapshot.Place, content map[string][]byte) {
	t.Helper()
	ctx := t.Context()
	errs := make(chan error, len(content))
	var all sync.WaitGroup
	for id, c := range content {
		all.Go(func() { errs <- place.Save(ctx, id, c) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	ids, err := place.List(ctx)
	if err != nil || !slices.IsSorted(ids) || len(ids) != len(content) {
		t.Fatalf("it lists %v, %v", ids, err)
	}
	for id, want := range content {
		if got, err := place.Load(context.WithoutCancel(ctx), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", id, len(got), len(want), err)
		}
	}
}

func TestPlaceRefused(t *testing.T) {
	remote := GitRemote{
		URL: "https://git.example.com/fleet.git", Followed: "main",
		Auth: func() (gitrepo.Auth, error) { return gitrepo.Auth{}, nil },
	}
	for where, words := range map[string]string{
		"":                    "nothing says where",
		"s3://bucket/x":       "of the kind s3://",
		"branch:main":         "has the fleet itself",
		"branch:":             "cannot be the name of a branch",
		"branch:-x":           "cannot be the name of a branch",
		"branch:a..b":         "cannot be the name of a branch",
		"oci://":              "is not a repository",
		"oci://r.io/x:tag":    "is not a repository",
		"oci://r.io/x@sha256": "is not a repository",
	} {
		if _, err := OpenPlace(where, "mgmt", remote); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", where, err)
		}
	}
	if _, err := OpenPlace("branch:snapshots", "mgmt", GitRemote{}); err == nil || !strings.Contains(err.Error(), "has no remote") {
		t.Errorf("a branch without a remote: %v", err)
	}
}

// A branch that holds something else is not written over.
func TestBranchOfSomethingElse(t *testing.T) {
	server := gittest.NewHTTPS(t, gittest.Options{})
	auth := gitrepo.Auth{Username: server.Username, Token: server.Token, CA: server.CA}
	server.Seed(t, "work", map[string]string{"index.html": "x\n"})
	place, err := OpenPlace("branch:work", "mgmt", GitRemote{
		URL: server.URL, Followed: "main",
		Auth: func() (gitrepo.Auth, error) { return auth, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Save(t.Context(), snapshot.NewID(time.Now()), []byte("x")); err == nil ||
		!strings.Contains(err.Error(), "is no branch of snapshots") {
		t.Errorf("%v", err)
	}
	if text := fmt.Sprint(place); strings.Contains(text, server.Token) || !strings.Contains(text, "branch work of") {
		t.Errorf("it is called %s", text)
	}
}

// A place that does not answer is an error that says what its snapshots would have told, and what to do.
func TestSnapshotsOfASilentPlace(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	file := filepath.Join(t.TempDir(), "snapshots")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for where, hint := range map[string]string{
		"oci://" + strings.TrimPrefix(closed.URL, "http://") + "/acme/snapshots": "proxy",
		file: "mounted",
	} {
		s := &Session{Fleet: &v1alpha1.Fleet{}, Mgmt: &v1alpha1.ManagementCluster{Name: "mgmt"}}
		s.Fleet.Spec.Snapshots.To = where
		_, _, err := s.Snapshots(t.Context())
		if err == nil || !strings.Contains(err.Error(), "find out whether there are snapshots of mgmt") {
			t.Errorf("%s: %v", where, err)
		}
		if says := diag.Hint(err); !strings.Contains(says, hint) || !strings.Contains(says, "whether another machine has made mgmt") {
			t.Errorf("%s: it advises: %s", where, says)
		}
	}
}
