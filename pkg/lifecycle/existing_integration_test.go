//go:build integration

package lifecycle

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// existingCluster is a real API server with a fleet repo for it.
type existingCluster struct{ standingtest.Cluster }

func newExistingCluster(t *testing.T) *existingCluster {
	t.Helper()
	return &existingCluster{*standingtest.New(t)}
}

func TestExistingHost(t *testing.T) {
	e := newExistingCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	t.Run("nothing is installed without permission", func(t *testing.T) {
		before := e.Namespaces(t)
		_, err := Init(ctx, e.Deps, e.Options(t, "guest"))
		if err == nil || !strings.Contains(err.Error(), "not an administrator") || !strings.Contains(diag.Hint(err), "cluster-admin") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
		if after := e.Namespaces(t); !slices.Equal(before, after) {
			t.Errorf("namespaces are %q, were %q", after, before)
		}
		if head := e.Git.Head(t, "main"); head != "" {
			t.Errorf("the fleet repo has %s", head)
		}
	})
	t.Run("an administrator is let through", func(t *testing.T) {
		options := e.Options(t, "admin")
		options.SkipPreflight = []string{"downloads"} // the network is no matter of this test
		report, err := Doctor(ctx, e.Deps, options)
		if err != nil || report.Failed != 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		i := slices.IndexFunc(report.Checks, func(r preflight.Report) bool { return r.Name == "name" })
		if i < 0 || !strings.Contains(report.Checks[i].Summary, "administrator") {
			t.Errorf("%+v", report.Checks)
		}
	})
	t.Run("the host is there from the start", func(t *testing.T) {
		s, err := session.Open(ctx, e.Deps, e.Options(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if st, err := s.Host.State(ctx); err != nil || st != host.StateRunning {
			t.Errorf("state %s, %v", st, err)
		}
		answered := false
		if err := s.Host.Create(ctx, host.CreateOptions{Answers: func([]byte) { answered = true }}); err != nil || !answered {
			t.Errorf("create: %v, answered %t", err, answered)
		}
		if err := s.Cluster.Save(s.Record()); err != nil {
			t.Fatal(err)
		}
	})
	target, err := management.Find(e.Deps.Store, "", e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("its kubeconfig has the one context", func(t *testing.T) {
		raw, err := management.Kubeconfig(ctx, management.KubeconfigOptions{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(raw)
		if err != nil || len(config.Contexts) != 1 || config.CurrentContext != "admin" {
			t.Errorf("%+v, %v", config, err)
		}
	})
	t.Run("teardown", func(t *testing.T) { e.teardown(ctx, t, target) })
}

// teardown refuses while a Cluster lives only there, deletes it when asked, and leaves the cluster itself alone.
func (e *existingCluster) teardown(ctx context.Context, t *testing.T, target *management.Target) {
	t.Helper()
	e.MakeCluster(ctx, t)
	_, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target})
	if err == nil || !strings.Contains(err.Error(), "team-a/alpha") {
		t.Fatalf("got %v; want a refusal that names the cluster", err)
	}
	for _, way := range []string{"--pivot-to", "--delete-clusters"} {
		if !strings.Contains(diag.Hint(err), way) {
			t.Errorf("hint %q does not name %s", diag.Hint(err), way)
		}
	}
	asked := []string{}
	no := diag.Usage("", "no")
	confirm := func(plan *TeardownPlan) error {
		for _, c := range plan.Clusters {
			asked = append(asked, c.Name)
		}
		return no
	}
	if _, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true, Confirm: confirm}); err == nil {
		t.Error("torn down without consent")
	}
	if !slices.Equal(asked, []string{"team-a/alpha"}) {
		t.Errorf("asked about %q", asked)
	}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, &clusterv1.Cluster{}); err != nil {
		t.Errorf("the cluster is gone without consent: %v", err)
	}
	result, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(result.DeletedClusters, []string{"team-a/alpha"}) || len(result.Leftovers) != 1 {
		t.Errorf("%+v", result)
	}
	if !slices.Contains(e.Namespaces(t), "team-a") {
		t.Error("teardown went beyond the workload clusters")
	}
	if _, err := os.Stat(target.Cluster.Dir); err == nil {
		t.Errorf("%s is left", target.Cluster.Dir)
	}
}
