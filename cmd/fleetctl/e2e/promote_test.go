//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// promotions is what `fleetctl promote --status -o json` says, as far as the test looks at it.
type promotions struct {
	Environments []struct {
		Name    string `json:"name"`
		Tag     string `json:"tag"`
		Wanted  string `json:"wanted"`
		Applied string `json:"applied"`
		Ready   bool   `json:"ready"`
		Reason  string `json:"reason"`
		Waiting []struct {
			Subject string `json:"subject"`
		} `json:"waiting"`
	} `json:"environments"`
}

// workers counts the machines of a cluster that are no control plane; -1 where there is no such cluster.
func (f *fleet) workers(name string) int {
	f.t.Helper()
	st, _ := f.status()
	for _, c := range st.Clusters {
		if c.Name != name {
			continue
		}
		count := 0
		for _, m := range c.Machines {
			if !m.ControlPlane {
				count++
			}
		}
		return count
	}
	return -1
}

// has waits until a cluster has that many workers.
func (f *fleet) has(name string, workers int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s has %d workers", name, workers), 4*time.Minute, func() string {
		if got := f.workers(name); got != workers {
			return fmt.Sprintf("it has %d", got)
		}
		return ""
	})
}

// promoted waits until promote finds the environments before production healthy, and has made the tag.
func (f *fleet) promoted(tag string) {
	f.t.Helper()
	eventually(f.t, "promote makes "+tag, 4*time.Minute, func() string {
		if out, err := f.command("promote", "-o", "json").CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	if got := f.git("tag", "--points-at", "HEAD~1"); got != tag {
		f.t.Errorf("the commit before the last is tagged %q, not %s", got, tag)
	}
}

// TestExamplePromotion follows the walk-through of the example: production, and only production, goes from tag to tag and back, cluster
// definitions included; what staging has for its clusters is applied.
func TestExamplePromotion(t *testing.T) {
	files := exampleFiles(t, "promotion")
	files["providers/docker/v1/mgmt/stand-in.yaml"] = standIn
	f := newFleetOn(t, onEmbedded, "mgmt")
	mgmt := f.client(f.initExample(serve(t, files)).Kubeconfig)
	f.fails(3, []string{"environment staging", "--skip-health"}, "promote")
	f.allReady("shop-staging")
	present(t, mgmt, kube.Key{Name: "batch"}, &schedulingv1.PriorityClass{})
	present(t, mgmt, kube.Key{Namespace: "shop", Name: "tenant"}, &corev1.ResourceQuota{})
	present(t, mgmt, kube.Key{Namespace: "shop", Name: "default-deny"}, &networkingv1.NetworkPolicy{})
	if team := present(t, mgmt, kube.Key{Namespace: "shop", Name: "team"}, &rbacv1.RoleBinding{}); team.RoleRef.Name != "admin" {
		t.Errorf("the tenant's people are %s in staging", team.RoleRef.Name)
	}

	f.promoted("v0.1.0")
	f.allReady("shop-production", "shop-staging")
	f.fails(0, []string{"Nothing to do"}, "promote")

	// The same change for both: it reaches staging by itself, production by promotion, and goes from there alone.
	for _, name := range []string{"shop-staging", "shop-production"} {
		f.ok("pool", "scale", name, "md-0", "--replicas", "2", "--push")
	}
	f.has("shop-staging", 2)
	if got := f.workers("shop-production"); got != 1 {
		t.Errorf("production has %d workers before it was promoted to", got)
	}
	waits := decode[promotions](t, f.ok("promote", "--status", "-o", "json").stdout)
	for _, e := range waits.Environments {
		if e.Name == "production" && (e.Tag != "v0.1.0" || e.Applied != e.Wanted || !e.Ready || len(e.Waiting) != 2) {
			t.Errorf("production: %+v", e)
		}
	}
	f.promoted("v0.1.1")
	f.has("shop-production", 2)
	f.ok("promote", "--to", "v0.1.0")
	f.has("shop-production", 1)
	if got := f.workers("shop-staging"); got != 2 {
		t.Errorf("staging has %d workers after production went back", got)
	}
	f.ok("teardown", "--delete-clusters", "--yes")
}
