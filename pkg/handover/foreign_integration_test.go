//go:build integration

package handover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// pair starts two management clusters, of which the first has the Cluster shop/shop, and returns the options of a hand-over.
func pair(t *testing.T) Options {
	t.Helper()
	source, target := managing(t), managing(t)
	shopAt(t, source)
	return Options{
		Fleet: "f", Source: Side{Name: "old", Client: source}, Target: Side{Name: "new", Client: target},
		Drain: 10 * time.Second, BlockMove: 10 * time.Second,
	}
}

// Where somebody else refuses the ConfigMap by which a hand-over sees its fence, no fence goes up: neither a run nor an abort would get
// past it.
func TestRefusedProbe(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := pair(t)
	c := o.Target.Client
	remove := put(ctx, t, c, strings.ReplaceAll(policyOn("CREATE", "", "configmaps", "true"), "on-configmaps", "probes"))
	until(ctx, t, func(ctx context.Context) bool {
		canary := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "canary"}}
		return c.Create(ctx, canary, client.DryRunAll) != nil
	})
	// The namespace of the probe does not exist yet.
	if _, err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "new would refuse the ConfigMap fleetctl-handover-probe") {
		t.Errorf("the run: %v", err)
	}
	untouched(t, o.Source.Client, o.Target.Client)
	remove()
	for name, to := range map[string]string{
		"to-all":               "true",
		"to-the-administrator": `!request.userInfo.username.startsWith("fleetctl:handover:")`,
		"to-the-hand-over":     `request.userInfo.username.startsWith("fleetctl:handover:")`,
	} {
		for at, c := range map[string]*kube.Client{"old": o.Source.Client, "new": o.Target.Client} {
			t.Run(name+" at "+at, func(t *testing.T) {
				defer put(ctx, t, c, strings.ReplaceAll(policyOn("CREATE", "", "configmaps", to), "on-configmaps", "probes-"+name))()
				refusedBefore(ctx, t, o, at+" would refuse the ConfigMap fleetctl-handover-probe")
				untouched(t, o.Source.Client, o.Target.Client)
			})
		}
	}
}

// A target that refuses deletions cannot keep an abort from giving the source its work back. A later abort clears it up.
func TestAbortAtATargetThatDeletesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := pair(t)
	o.Check = func(context.Context, *kube.Client) error { return errors.New("Flux would delete something") }
	if _, err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "Flux would delete something") {
		t.Fatalf("the run: %v", err)
	}
	allow := put(ctx, t, o.Target.Client, policyOn("DELETE", "", "secrets", `oldObject.metadata.namespace == "shop"`))
	until(ctx, t, func(ctx context.Context) bool {
		_, err := Abort(ctx, o)
		return err != nil && strings.Contains(err.Error(), "not here, says the team") &&
			strings.Contains(diag.Hint(err), "old has its work again")
	})
	untouched(t, o.Source.Client)
	if j, err := ReadJournal(ctx, o.Target.Client); err != nil || !j.Active() {
		t.Errorf("the journal of the target: %+v, %v", j, err)
	}
	allow()
	until(ctx, t, func(ctx context.Context) bool { _, err := Abort(ctx, o); return err == nil })
	untouched(t, o.Source.Client, o.Target.Client)
	left, err := managerOf(t, o.Target.Client).Clusters(ctx)
	if err != nil || len(left) > 0 {
		t.Errorf("left at the target: %v, %v", left, err)
	}
}
