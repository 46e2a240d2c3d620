//go:build integration

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A teardown looks into the workload clusters before it deletes them: what they have in a cloud goes first, and one that manages others
// stays.
func TestTeardownLooksInside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	workload := e.WithBalancer(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "dead")); err != nil { // it has no kubeconfig
		t.Fatal(err)
	}
	options := TeardownOptions{Target: target, DeleteClusters: true, DryRun: true}

	t.Run("the plan says what goes, and what nobody knows", func(t *testing.T) {
		result, err := Teardown(ctx, e.Deps, options)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(result.Plan.Steps, "\n")
		for _, want := range []string{
			"Delete the load balancer of Service default/web in team-a/alpha.",
			"team-a/dead: what Kubernetes made", "Suspend Flux",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("it does not say %q:\n%s", want, text)
			}
		}
		if strings.Index(text, "load balancer") > strings.Index(text, "Delete the workload cluster") {
			t.Errorf("not in order:\n%s", text)
		}
		e.StandsUntouched(ctx, t, "alpha")
		if result.Changed {
			t.Error("it says that it has changed something")
		}
	})
	options.DryRun = false
	t.Run("what is paused is refused", func(t *testing.T) {
		c, yes := &clusterv1.Cluster{}, true
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, c); err != nil {
			t.Fatal(err)
		}
		c.Spec.Paused, c.Annotations = &yes, map[string]string{clusterv1.PausedAnnotation: "by hand"}
		if err := e.Client.Update(ctx, c); err != nil {
			t.Fatal(err)
		}
		_, err := Teardown(ctx, e.Deps, options)
		if err == nil || !strings.Contains(err.Error(), "paused: team-a/alpha") {
			t.Fatalf("got %v", err)
		}
		// The command of the hint ends both kinds of pause.
		resume := capi.ResumeCommand(client.ObjectKeyFromObject(c))
		if !strings.Contains(diag.Hint(err), "`"+resume+"`") {
			t.Errorf("hint %q lacks %s", diag.Hint(err), resume)
		}
		_, quoted, _ := strings.Cut(resume, " -p ")
		if err := e.Client.Patch(ctx, c, client.RawPatch(types.MergePatchType, []byte(strings.Trim(quoted, "'")))); err != nil {
			t.Fatal(err)
		}
		if *c.Spec.Paused || len(c.Annotations) > 0 {
			t.Errorf("it is still paused: %t, annotations %v", *c.Spec.Paused, c.Annotations)
		}
	})
	t.Run("a management cluster is refused", func(t *testing.T) {
		child := *e
		child.Client = workload
		child.MakeCluster(ctx, t)
		_, err := Teardown(ctx, e.Deps, options)
		if err == nil || !strings.Contains(err.Error(),
			"team-a/alpha is a management cluster itself, and 1 cluster would be left without one: team-a/alpha") {
			t.Errorf("got %v", err)
		}
		e.StandsUntouched(ctx, t, "alpha")
		given := options
		given.Abandon, given.DryRun = []string{"alpha"}, true
		if _, err := Teardown(ctx, e.Deps, given); err != nil {
			t.Errorf("given up: %v", err)
		}
		if err := workload.WithWatch.Delete(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that answers with errors is refused", func(t *testing.T) {
		if err := workload.Create(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{} // Cluster API is there, has a Cluster, and cannot say all
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName("machines.cluster.x-k8s.io")
		if err := workload.Delete(ctx, []*unstructured.Unstructured{crd}, kube.DeleteOptions{Wait: true}); err != nil {
			t.Fatal(err)
		}
		_, err := Teardown(ctx, e.Deps, options)
		if err == nil || !strings.Contains(err.Error(), "look into the workload cluster team-a/alpha") ||
			!strings.Contains(diag.Hint(err), "--abandon team-a/alpha") {
			t.Errorf("got %v, hint %s", err, diag.Hint(err))
		}
		e.StandsUntouched(ctx, t, "alpha")
		kubetest.ClusterAPI(t, workload, "machines")
		if err := workload.WithWatch.Delete(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("one that cannot be drained is kept, and keeps no other", func(t *testing.T) {
		if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "also-dead")); err != nil {
			t.Fatal(err)
		}
		held := &corev1.Service{}
		if err := workload.Get(ctx, kube.Key{Namespace: "default", Name: "web"}, held); err != nil {
			t.Fatal(err)
		}
		held.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
		if err := workload.Update(ctx, held); err != nil {
			t.Fatal(err)
		}
		given := options
		given.drainTime = 3 * time.Second
		_, err := Teardown(ctx, e.Deps, given)
		if err == nil || !strings.Contains(err.Error(), "drain team-a/alpha") || !strings.Contains(err.Error(), "Service default/web") ||
			!strings.Contains(err.Error(), "team-a/also-dead: what Kubernetes made") {
			t.Errorf("got %v", err)
		}
		e.StandsUntouched(ctx, t, "alpha")
		if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "also-dead"}, &clusterv1.Cluster{}); !kube.IsAbsent(err) {
			t.Errorf("also-dead: %v", err)
		}
		if err := workload.Get(ctx, kube.Key{Namespace: "default", Name: "web"}, held); err != nil {
			t.Fatal(err)
		}
		held.Finalizers = nil
		if err := workload.Update(ctx, held); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what is in a cloud goes first", func(t *testing.T) {
		asked := errors.New("asked")
		options.Confirm = func(*TeardownPlan) error { return asked }
		if _, err := Teardown(ctx, e.Deps, options); !errors.Is(err, asked) {
			t.Errorf("got %v", err)
		}
		options.Confirm = nil
		result, err := Teardown(ctx, e.Deps, options)
		if err != nil {
			t.Fatal(err)
		}
		found := &corev1.Service{}
		if err := workload.Get(ctx, kube.Key{Namespace: "default", Name: "web"}, found); !kube.IsAbsent(err) {
			t.Errorf("the Service is %v, %v", found.DeletionTimestamp, err)
		}
		if !slices.Equal(result.DeletedClusters, []string{"team-a/alpha"}) {
			t.Errorf("%+v", result)
		}
	})
}

// With --skip-drain nothing in a workload cluster is touched, and what stays in the cloud is named.
func TestTeardownWithoutDraining(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	workload := e.WithBalancer(ctx, t)
	result, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true, SkipDrain: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(result.Leftovers, "\n"); !strings.Contains(text, "load balancer of Service default/web") {
		t.Errorf("left over: %s", text)
	}
	if err := workload.Get(ctx, kube.Key{Namespace: "default", Name: "web"}, &corev1.Service{}); err != nil {
		t.Error(err)
	}
}

// Of a deletion that does not end, the error names what is there still: its cluster, what the cloud calls it, and what holds it. Nothing
// takes a finalizer away.
func TestTeardownNamesWhatRemains(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	held := &clusterv1.Cluster{}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, held); err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{"cluster.cluster.x-k8s.io"}
	if err := e.Client.Update(ctx, held); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "alpha-1", Finalizers: []string{"machine.cluster.x-k8s.io"},
			Labels: map[string]string{clusterv1.ClusterNameLabel: "alpha"},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "alpha", ProviderID: "aws:///eu-1/i-1", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("x")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io",
				Kind:     "TestMachine", Name: "x",
			},
		},
	}
	if err := e.Client.Create(ctx, machine); err != nil {
		t.Fatal(err)
	}
	_, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true, Timeout: 10 * time.Second})
	for _, want := range []string{
		"still there:",
		"Machine team-a/alpha-1 of cluster team-a/alpha, in the cloud aws:///eu-1/i-1, held by machine.cluster.x-k8s.io",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
	if err := e.Client.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha-1"}, machine); err != nil || len(machine.Finalizers) != 1 {
		t.Errorf("%v, %v", machine.Finalizers, err)
	}
	if _, err := management.Find(e.Deps.Store, "", e.Dir); err != nil {
		t.Errorf("it cannot be run again: %v", err)
	}
}

// In the middle of a hand-over, a teardown of either side would leave the other one fenced, with copies or without a source. A target
// that has taken over owns what it has, and what is finished or undone hinders nobody.
func TestNoTeardownInTheMiddleOfAHandOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "alpha")); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}
	if err := e.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	journal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
	if err := e.Client.Create(ctx, journal); err != nil {
		t.Fatal(err)
	}
	agreed := errors.New("agreed")
	for _, test := range []struct {
		role   handover.Role
		phase  handover.Phase
		detach bool
		want   string
	}{
		{handover.RoleSource, handover.PhasePlanned, false, "`fleetctl cluster transfer alpha --abort`"},
		{handover.RoleSource, handover.PhaseFenced, false, "`fleetctl cluster transfer alpha --abort`"},
		{handover.RoleSource, handover.PhaseAborting, false, "`fleetctl cluster transfer alpha --abort`"},
		{handover.RoleSource, handover.PhaseFenced, true, "`fleetctl cluster detach team-a/alpha`"},
		{handover.RoleTarget, handover.PhasePlanned, false, "`fleetctl cluster transfer alpha --abort`"},
		{handover.RoleTarget, handover.PhaseCommitted, false, ""},
		{handover.RoleSource, handover.PhaseReleased, false, ""},
	} {
		journal.Data = map[string][]byte{"journal": fmt.Appendf(nil, `{"formatVersion":"1","id":"x","role":%q,"phase":%q,"detach":%t,`+
			`"source":{"name":"mgmt","uid":"u"},"target":{"name":"second","uid":"v"},"select":["team-a/alpha"]}`,
			test.role, test.phase, test.detach)}
		if err := e.Client.Update(ctx, journal); err != nil {
			t.Fatal(err)
		}
		_, err := Teardown(ctx, e.Deps, TeardownOptions{
			Target: target, DeleteClusters: true, Confirm: func(*TeardownPlan) error { return agreed },
		})
		if test.want == "" && !errors.Is(err, agreed) || test.want != "" && !strings.Contains(diag.Hint(err), test.want) {
			t.Errorf("%s, %s: %v (%s)", test.role, test.phase, err, diag.Hint(err))
		}
	}
}
