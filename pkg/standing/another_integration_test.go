//go:build integration

package standing_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// An existing cluster that is no fleet's does not become a second management cluster beside one that only Git tells of, nor beside one that
// this machine knows at another context.
func TestAnotherOnAnExistingCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	theirs := func(t *testing.T, _ *session.Session) {
		t.Helper()
		e.FollowSomething(ctx, t, "https://git.example.com/theirs.git", "main", "clusters/prod")
		t.Cleanup(func() { e.ForgetFlux(ctx, t) })
	}
	ours := func(t *testing.T, s *session.Session) {
		t.Helper()
		e.FollowSomething(ctx, t, e.Git.URL, "main", s.Mgmt.Dir())
		t.Cleanup(func() { e.ForgetFlux(ctx, t) })
	}
	claimed := func(t *testing.T, s *session.Session) {
		t.Helper()
		if err := standing.Claim(ctx, s, e.Client, following.View{}); err != nil {
			t.Fatal(err)
		}
	}
	journalled := func(t *testing.T, _ *session.Session) {
		t.Helper()
		journal := metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}
		e.Apply(ctx, t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+journal.Namespace+"}}")
		e.WriteJournal(ctx, t, handover.Journal{ID: "one", Role: handover.RoleTarget, Phase: handover.PhaseReleased})
		t.Cleanup(func() {
			if err := e.Client.WithWatch.Delete(ctx, &corev1.Secret{ObjectMeta: journal}); err != nil {
				t.Error(err)
			}
		})
	}
	const stranger = "the cluster of the context admin is no fleet's yet, "
	for _, c := range []struct {
		name                string
		before, gone, ended bool
		known               string // the context by which this machine knows the management cluster
		there               func(*testing.T, *session.Session)
		beside              bool   // its Flux follows something beside
		says                string // of the error; none: it may be made
	}{
		{name: "a new repo"},
		{name: "Git tells of one", before: true, says: stranger + "this machine has no record of it"},
		{name: "Git tells of one that is gone", before: true, gone: true},
		{name: "Git tells of one that has ended", before: true, ended: true},
		{name: "known here by this context", before: true, known: "admin"},
		{name: "known here by another", before: true, known: "elsewhere", says: stranger + "this machine knows it by the context elsewhere"},
		{name: "known here by another, and gone", before: true, known: "elsewhere", gone: true},
		{name: "this is the one", before: true, there: claimed},
		{name: "this is the one that had a hand-over", before: true, there: journalled},
		{name: "its Flux follows this fleet's folder", before: true, there: ours},
		{name: "its Flux follows this fleet's folder, and another tool's", before: true, there: ours, beside: true},
		{name: "its Flux follows something else", before: true, there: theirs, says: stranger},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.Unclaim(ctx, t)
			s, err := session.Open(ctx, e.Deps, e.Options(t, "admin"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			put(t, filepath.Join(e.Dir, filepath.FromSlash(s.Layout().SyncFile())), c.before)
			put(t, filepath.Join(e.Dir, filepath.FromSlash(s.Layout().Ended(s.Mgmt.Name))), c.ended)
			if c.there != nil {
				c.there(t, s)
			}
			if c.beside {
				e.Apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: platform, namespace: "+
					"flux-system}, spec: {path: ./, prune: true, sourceRef: {kind: OCIRepository, name: platform}}}")
			}
			if c.known != "" {
				record := s.Record()
				record.Context = c.known
				if err := s.Cluster.Save(record); err != nil {
					t.Fatal(err)
				}
			}
			s.Opts.FormerIsGone = c.gone
			err = standing.RefuseAnother(ctx, s)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("got %v", err)
			case c.says == "":
			case err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(diag.Hint(err), "--source-is-gone") ||
				!strings.Contains(diag.Hint(err), "fleetctl connect"):
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

// put writes a file for the time of a test, if it is to be there.
func put(t *testing.T, file string, there bool) {
	t.Helper()
	if !there {
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
}
