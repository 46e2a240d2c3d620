//go:build integration

package lifecycle

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A Cluster that is declared paused from its first commit gets no API server. Nobody waits for its Flux, and a warning says so. The Flux of
// a Cluster that was paused later is waited for.
func TestFluxOfAClusterThatNeverBeganIsNotAwaited(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	said := &warned{Reporter: s.Deps.Report}
	s.Deps.Report = said
	kubetest.ClusterAPI(t, e.Client, "clusters", "machines")
	e.FollowSomething(ctx, t, "", "", "")
	if err := e.Client.WaitEstablished(ctx, "clusters.cluster.x-k8s.io", "kustomizations.kustomize.toolkit.fluxcd.io"); err != nil {
		t.Fatal(err)
	}
	const cluster = "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: NAME, name: NAME}, spec: {paused: true, " +
		"infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestCluster, name: NAME}}}"
	const flux = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: NAME, name: NAME-flux, labels: " +
		"{fleetctl.dev/flux: components}}, spec: {path: ./x}, status: {conditions: [{type: Ready, status: 'False', message: no kubeconfig}]}}"
	add := func(name string) {
		t.Helper()
		for _, manifest := range []string{"{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}", cluster, flux} {
			e.Apply(ctx, t, strings.ReplaceAll(manifest, "NAME", name))
		}
	}
	add("later")
	b := newBootstrap(s, BootstrapOptions{})
	wait := func() error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return b.waitClusters(ctx, e.Client, nil)
	}
	if err := wait(); err != nil {
		t.Errorf("a bootstrap waits for a Cluster that never began: %v", err)
	}
	if !slices.ContainsFunc(said.says, func(text string) bool { return strings.Contains(text, "later/later") }) {
		t.Errorf("no warning names the Cluster: %q", said.says)
	}

	paused := &clusterv1.Cluster{}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "later", Name: "later"}, paused); err != nil {
		t.Fatal(err)
	}
	paused.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: "True", Reason: "Test", LastTransitionTime: metav1.Now(),
	}}
	if err := e.Client.Status().Update(ctx, paused); err != nil {
		t.Fatal(err)
	}
	if err := wait(); diag.Code(err) != diag.ExitNotReady || !strings.Contains(err.Error(), "later-flux") {
		t.Errorf("the Flux of a Cluster that is paused later: %v", err)
	}
}
