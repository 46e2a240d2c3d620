//go:build integration

package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
)

// beside is another fleet repo, with a Git server of its own and on another machine, for the same cluster.
func (e *existingCluster) beside(t *testing.T) *existingCluster {
	t.Helper()
	return &existingCluster{*e.Beside(t)}
}

// Two fleets with the same names, on one cluster: the second is told whose it is, and nothing is touched; from its own repo, cloned
// anywhere, the first goes on.
func TestAnotherFleetsCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	first := newExistingCluster(t)
	s, err := first.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	id := s.Identity()
	if err := s.ConfirmClaim(ctx, first.Client); err != nil {
		t.Fatal(err)
	}
	commitIdentity := func(e *existingCluster) {
		if err := os.WriteFile(filepath.Join(e.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commitIdentity(first)

	second := first.beside(t)
	t.Run("init", func(t *testing.T) {
		before := first.Namespaces(t)
		_, err := Init(ctx, second.Deps, second.Options(t, "admin"))
		refused(t, err, first.Git.URL)
		if after := first.Namespaces(t); !slices.Equal(before, after) {
			t.Errorf("namespaces are %q, were %q", after, before)
		}
		if head := second.Git.Head(t, "main"); head != "" {
			t.Errorf("%s was pushed", head)
		}
		for _, name := range []string{"cluster.json", management.KubeconfigFile} {
			if _, err := os.Stat(second.Deps.Store.Cluster("mgmt").Path(name)); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
	t.Run("init may not skip it", func(t *testing.T) {
		o := second.Options(t, "admin")
		o.SkipPreflight = []string{checkup.Fleet, checkup.Flux, "name"}
		_, err := Init(ctx, second.Deps, o)
		refused(t, err, first.Git.URL)
	})
	t.Run("bootstrap", func(t *testing.T) {
		_, err := Bootstrap(ctx, second.Deps, BootstrapOptions{Options: second.Options(t, "admin")})
		refused(t, err, first.Git.URL)
	})
	t.Run("doctor", func(t *testing.T) {
		report, err := Doctor(ctx, second.Deps, second.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(report.Checks, func(r preflight.Report) bool { return r.Name == checkup.Fleet })
		if i < 0 || report.Checks[i].Status != preflight.StatusFail || !strings.Contains(report.Checks[i].Summary, first.Git.URL) {
			t.Errorf("%+v", report.Checks)
		}
	})
	t.Run("what works with it", func(t *testing.T) {
		// A state folder that says that it is the second's: of a cluster that was made anew meanwhile.
		s, err := session.Open(ctx, second.Deps, second.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Cluster.Save(s.Record()); err != nil {
			t.Fatal(err)
		}
		target, err := management.Find(second.Deps.Store, "mgmt", second.Dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = target.Client(ctx) // which the wait for a removal needs, too
		refused(t, err, first.Git.URL)
		_, err = Teardown(ctx, second.Deps, TeardownOptions{Target: target, DeleteClusters: true})
		refused(t, err, first.Git.URL)
		_, err = management.StartHost(ctx, second.Deps, target)
		refused(t, err, first.Git.URL)
		if from := management.StatusSources(ctx, target); from.Client != nil || !errors.Is(from.Unreachable, ownership.ErrOtherFleet) {
			t.Errorf("status reads it: %v", from.Unreachable)
		}
	})
	t.Run("its record on this machine", func(t *testing.T) {
		stranger := second.beside(t)
		stranger.Deps.Store = first.Deps.Store
		before := read(t, first.Deps.Store.Cluster("mgmt").Path("cluster.json"))
		_, err := Init(ctx, stranger.Deps, stranger.Options(t, "admin"))
		refused(t, err, first.Git.URL)
		_, err = management.Find(first.Deps.Store, "mgmt", stranger.Dir)
		refused(t, err, first.Git.URL)
		_, err = management.Find(first.Deps.Store, "", stranger.Dir)
		refused(t, err, first.Git.URL)
		if after := read(t, first.Deps.Store.Cluster("mgmt").Path("cluster.json")); after != before {
			t.Errorf("the record is\n%s\nwas\n%s", after, before)
		}
	})
	t.Run("a clone, on another machine", func(t *testing.T) {
		clone := first.beside(t)
		clone.Git = first.Git
		commitIdentity(clone)
		if s, err := clone.Take(ctx, t); err != nil || s.Identity() != id {
			t.Errorf("%s, %v", s.Identity(), err)
		}
	})
	t.Run("a clone of before the identity was committed", func(t *testing.T) {
		clone := first.beside(t)
		clone.Git = first.Git
		if s, err := clone.Take(ctx, t); err != nil || s.Identity() != id {
			t.Errorf("%s, %v", s.Identity(), err)
		}
	})
	t.Run("the same fleet, under another name", func(t *testing.T) {
		o := first.Options(t, "admin")
		file := filepath.Join(first.Dir, v1alpha1.FileName)
		if err := os.WriteFile(file, []byte(strings.Replace(read(t, file), "- name: mgmt", "- name: other", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(ctx, first.Deps, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := standing.Claim(ctx, s, first.Client, following.View{}); err == nil ||
			!strings.Contains(err.Error(), "management cluster mgmt") {
			t.Errorf("got %v", err)
		}
	})
}

func refused(t *testing.T, err error, whose string) {
	t.Helper()
	if !errors.Is(err, ownership.ErrOtherFleet) && (err == nil || !strings.Contains(err.Error(), ownership.ErrOtherFleet.Error())) ||
		!strings.Contains(err.Error(), whose) || diag.Hint(err) == "" {
		t.Errorf("got %v, hint %q; want a refusal that names %s", err, diag.Hint(err), whose)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A Cluster that comes while somebody thinks about the question is not deleted with the others, nor with its management cluster.
func TestTeardownLooksAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.TakeWithCluster(ctx, t)
	target, err := management.Find(e.Deps.Store, "", e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	late := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "late"},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: "late",
		}},
	}
	_, err = Teardown(ctx, e.Deps, TeardownOptions{
		Target: target, DeleteClusters: true,
		Confirm: func(*TeardownPlan) error { return e.Client.Create(ctx, late) },
	})
	if err == nil || !strings.Contains(err.Error(), "team-a/late") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"alpha", "late"} {
		found := &clusterv1.Cluster{}
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: name}, found); err != nil || !found.DeletionTimestamp.IsZero() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(target.Cluster.Path("cluster.json")); err != nil {
		t.Error(err)
	}
}
