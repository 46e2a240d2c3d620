//go:build integration

package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// What a standby has in the middle of taking over are copies: a teardown that deletes clusters keeps off them. And an init that does not
// know that the cluster is a standby, because fleet.yaml does not say so, starts nothing there.
func TestStandbyIsLeftAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s := e.TakeWithCluster(ctx, t)
	target, err := management.Find(e.Deps.Store, "", e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	middle := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseCopied, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: "lost", UID: "1"}, Target: handover.Party{Name: target.Name, UID: "2"},
	}
	e.WriteJournal(ctx, t, middle)
	_, err = Teardown(ctx, e.Deps, TeardownOptions{Target: target, DeleteClusters: true})
	if err == nil || !strings.Contains(err.Error(), "is in the middle of") {
		t.Errorf("a teardown in the middle: %v", err)
	}
	if _, err := standing.RefuseHandedOver(ctx, s, e.Client); err == nil || !strings.Contains(err.Error(), "is taking over") {
		t.Errorf("init in the middle: %v", err)
	}
	e.StandsUntouched(ctx, t, "alpha")
	side := handover.Side{Name: target.Name, Client: e.Client}
	if resting, err := handover.LookAtStandby(ctx, side); err != nil || resting != nil {
		t.Errorf("a look in the middle: %+v, %v", resting, err)
	}
	e.WriteJournal(ctx, t, handover.Journal{
		Role: handover.RoleStandby, Phase: handover.PhaseFenced, Target: middle.Target, Standby: &handover.Standby{Of: "lost"},
	})
	if _, err := standing.RefuseHandedOver(ctx, s, e.Client); err == nil || !strings.Contains(err.Error(), "is a standby of lost") {
		t.Errorf("init at rest: %v", err)
	}
	if resting, err := handover.LookAtStandby(ctx, side); err != nil || resting == nil || resting.Of != "lost" || resting.Fenced ||
		len(resting.Running) > 0 {
		t.Errorf("a look at rest, without a fence: %+v, %v", resting, err)
	}
}

// asStandby has fleet.yaml declare the existing cluster as a standby of another management cluster, and returns the options of init for it.
func (e *existingCluster) asStandby(t *testing.T) session.Options {
	t.Helper()
	o := e.Options(t, "admin")
	fleet := `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "` + e.Git.URL + `", caFile: ca.pem}
  managementClusters:
  - name: mgmt
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
  standbys:
  - name: spare
    of: mgmt
    host: {type: existing, existing: {kubeconfig: "` + e.Kubeconfig + `", context: admin}}
`
	if err := os.WriteFile(filepath.Join(e.Dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Cluster = "spare"
	return o
}

// A management cluster that manages clusters is no standby, whatever fleet.yaml says: init says so before it stops its providers, or writes
// anything.
func TestStandbyHasNoWork(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.MakeCluster(ctx, t)
	o, before := e.asStandby(t), e.Namespaces(t)
	_, err := Init(ctx, e.Deps, o)
	if err == nil || !strings.Contains(err.Error(), "spare manages clusters, such as team-a/alpha") ||
		!strings.Contains(diag.Hint(err), "another host") {
		t.Errorf("init: %v, hint %q", err, diag.Hint(err))
	}
	if after := e.Namespaces(t); !slices.Equal(before, after) {
		t.Errorf("namespaces are %q, were %q", after, before)
	}
	if claim, err := ownership.ReadClaim(ctx, e.Client); err != nil || claim != nil {
		t.Errorf("it is claimed: %+v, %v", claim, err)
	}
	if _, err := e.Deps.Store.Cluster("spare").Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is remembered: %v", err)
	}
	e.StandsUntouched(ctx, t, "alpha")
}

// A standby on a cluster of the user's own is none after its teardown: nothing keeps anybody away, and what was stopped runs.
func TestStandbyIsTornDown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.WithFlux(ctx, t)
	side := handover.Side{Name: target.Name, Client: e.Client}
	if _, err := handover.MakeStandby(ctx, handover.StandbyOptions{Fleet: "acme", Target: side, Of: "lost"}); err != nil {
		t.Fatal(err)
	}
	stopped := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "flux-system", Name: "kustomize-controller", Labels: map[string]string{"app.kubernetes.io/part-of": "flux"},
			Annotations: map[string]string{capi.ReplicasMark: "1"},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kustomize-controller"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "kustomize-controller"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/manager:v1"}}},
			},
		},
	}
	if err := e.Client.Create(ctx, stopped); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "early")); !apierrors.IsForbidden(err) {
		t.Errorf("a write to a standby: %v", err)
	}
	result, err := Teardown(ctx, e.Deps, TeardownOptions{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(result.Plan.Steps, func(s string) bool { return strings.Contains(s, "no longer a standby") }) {
		t.Errorf("the plan is %q", result.Plan.Steps)
	}
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "late")); err != nil {
		t.Errorf("a write after the teardown: %v", err)
	}
	if journal, err := handover.ReadJournal(ctx, e.Client); err != nil || journal != nil {
		t.Errorf("the journal is left: %+v, %v", journal, err)
	}
	now := &appsv1.Deployment{}
	if err := e.Client.Get(ctx, kube.Key{Namespace: stopped.Namespace, Name: stopped.Name}, now); err != nil || *now.Spec.Replicas != 1 ||
		len(now.Annotations) != 0 {
		t.Errorf("what was stopped: %v, %d replicas, %v", err, *now.Spec.Replicas, now.Annotations)
	}
}
