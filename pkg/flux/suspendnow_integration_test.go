//go:build integration

package flux

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// applyAs applies an object as one of Flux's controllers would, of what Git has.
func applyAs(ctx context.Context, t *testing.T, c *kube.Client, suspend any) {
	t.Helper()
	spec := map[string]any{
		"interval": "1m", "prune": true, "path": "./x",
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
	}
	if suspend != nil {
		spec["suspend"] = suspend
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": "default", "name": "apps"}, "spec": spec,
	}}
	if err := c.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(applier),
		client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// TestSuspendNow: what is suspended on the cluster stays so while Flux applies what Git has, and it is known whether Git says so.
func TestSuspendNow(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	system := NewSystem(c)
	there, err := RefTo("Kustomization", kube.Key{Namespace: "default", Name: "apps"})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := RefTo("HelmRelease", kube.Key{Namespace: "default", Name: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RefTo("Pod", kube.Key{}); err == nil {
		t.Error("a Pod is no object of Flux")
	}
	want := func(what string, suspended, inGit bool) {
		t.Helper()
		report, err := system.Status(ctx)
		if err != nil || len(report.Kustomizations) != 1 {
			t.Fatalf("%s: %+v, %v", what, report, err)
		}
		if k := report.Kustomizations[0]; k.Suspended != suspended || k.SuspendedInGit != inGit || k.SuspendedByFleetctl {
			t.Errorf("%s: suspended %v, in Git %v, by fleetctl %v", what, k.Suspended, k.SuspendedInGit, k.SuspendedByFleetctl)
		}
	}
	set := func(what string, suspended, changed, inGit bool) {
		t.Helper()
		done, err := system.SetSuspended(ctx, []kube.Ref{gone, there}, suspended)
		if err != nil || len(done) != 2 || !done[0].Absent || done[0].Changed || done[1].Absent || done[1].Changed != changed ||
			done[1].InGit != inGit {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
	}
	applyAs(ctx, t, c, nil)
	want("as Git has it", false, false)
	set("suspend", true, true, false)
	set("suspend again", true, false, false)
	want("on the cluster alone", true, false)
	applyAs(ctx, t, c, nil)
	want("Flux has applied it again", true, false)
	if _, err := system.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	want("what a person has suspended is not init's to resume", true, false)
	applyAs(ctx, t, c, true)
	want("Git says so, too", true, true)
	set("resume, against Git", false, true, true)
	want("resumed", false, false)
	applyAs(ctx, t, c, true)
	want("Flux has applied it again", true, true)
	applyAs(ctx, t, c, nil)
	want("Git says so no more", false, false)
}

// What was let go because its cluster is handed over stays suspended: resumed, Flux would make the cluster again beside the new owner.
func TestNoResumeOfWhatWasLetGo(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	system := NewSystem(c)
	applyAs(ctx, t, c, nil)
	ref, err := RefTo("Kustomization", kube.Key{Namespace: "default", Name: "apps"})
	if err != nil {
		t.Fatal(err)
	}
	mark := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{letGoAnnotation: "true"}}, "spec": map[string]any{"suspend": true},
	}
	if err := system.patch(ctx, ref, mark); err != nil {
		t.Fatal(err)
	}
	if _, err := system.SetSuspended(ctx, []kube.Ref{ref}, false); err == nil ||
		!strings.Contains(diag.Hint(err), "fleetctl cluster transfer") {
		t.Errorf("it was resumed: %v", err)
	}
	report, err := system.Status(ctx)
	if err != nil || len(report.Kustomizations) != 1 || !report.Kustomizations[0].Suspended || !report.Kustomizations[0].LetGo {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := system.SetSuspended(ctx, []kube.Ref{ref}, true); err != nil {
		t.Errorf("suspended again: %v", err)
	}
}
