//go:build integration

package lifecycle

import (
	"context"
	"encoding/json"
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
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// writesJournal puts the journal of a standby there.
func (e *existingCluster) writesJournal(ctx context.Context, t *testing.T, j handover.Journal) {
	t.Helper()
	j.FormatVersion = "1"
	content, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}, Data: map[string][]byte{"journal": content},
	}
	if err := e.client.WithWatch.Delete(ctx, secret.DeepCopy()); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := e.client.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
}

// What a standby has in the middle of taking over are copies: a teardown that deletes clusters keeps off them. And an init that does not know that the cluster is a
// standby, because fleet.yaml does not say so, starts nothing there.
func TestStandbyIsLeftAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s := e.takeWithCluster(ctx, t)
	target, err := management.Find(e.deps.Store, "", e.dir)
	if err != nil {
		t.Fatal(err)
	}
	middle := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseCopied, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: "lost", UID: "1"}, Target: handover.Party{Name: target.Name, UID: "2"},
	}
	e.writesJournal(ctx, t, middle)
	_, err = Teardown(ctx, e.deps, TeardownOptions{Target: target, DeleteClusters: true})
	if err == nil || !strings.Contains(err.Error(), "is in the middle of") {
		t.Errorf("a teardown in the middle: %v", err)
	}
	if _, err := converge.RefuseHandedOver(ctx, s, e.client); err == nil || !strings.Contains(err.Error(), "is taking over") {
		t.Errorf("init in the middle: %v", err)
	}
	e.standsUntouched(ctx, t, "alpha")
	side := handover.Side{Name: target.Name, Client: e.client}
	if resting, err := handover.LookAtStandby(ctx, side); err != nil || resting != nil {
		t.Errorf("a look in the middle: %+v, %v", resting, err)
	}
	e.writesJournal(ctx, t, handover.Journal{
		Role: handover.RoleStandby, Phase: handover.PhaseFenced, Target: middle.Target, Standby: &handover.Standby{Of: "lost"},
	})
	if _, err := converge.RefuseHandedOver(ctx, s, e.client); err == nil || !strings.Contains(err.Error(), "is a standby of lost") {
		t.Errorf("init at rest: %v", err)
	}
	if resting, err := handover.LookAtStandby(ctx, side); err != nil || resting == nil || resting.Of != "lost" || resting.Fenced || len(resting.Running) > 0 {
		t.Errorf("a look at rest, without a fence: %+v, %v", resting, err)
	}
}

// What has taken over cannot be undone, and the error says what there is to do.
func TestStandbyThatTookOverIsNotUndone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	over := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseReleased, Activates: true, Snapshot: "20260101T000000Z-abcdef",
		Source: handover.Party{Name: "lost", UID: "1"}, Target: handover.Party{Name: "spare", UID: "2"},
	}
	if err := e.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	e.writesJournal(ctx, t, over)
	s := &session.Session{Deps: e.deps, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: "lost"}
	a := &activation{restore: &restore{session: s}, client: e.client, journal: &over, result: &ActivateResult{}}
	if err := a.undo(ctx); err == nil || !strings.Contains(err.Error(), "it can only go forward") || !strings.Contains(diag.Hint(err), "`fleetctl standby activate spare` finishes") {
		t.Errorf("%v, %q", err, diag.Hint(err))
	}
}

// What the run that began has paused stays so when the restore goes on, also where nobody says any more that others manage it.
func TestRestoreGoesOnPaused(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	s, err := e.take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	begun := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhasePlanned, Snapshot: "20260101T000000Z-abcdef", Pause: []string{"shop/shop"},
		Source: handover.Party{Name: s.Mgmt.Name, UID: "1"}, Target: handover.Party{Name: s.Mgmt.Name, UID: "2"},
	}
	e.writesJournal(ctx, t, begun)
	r := newRestore(converge.NewRun(s))
	r.snap = &snapshot.Snapshot{ID: begun.Snapshot, Fleet: s.Identity(), ManagementCluster: s.Mgmt.Name, Objects: []capi.Portable{{Object: json.RawMessage(shop)}}}
	if err := r.check(ctx, true); err != nil {
		t.Fatal(err)
	}
	if got := string(r.snap.Objects[0].Object); !strings.Contains(got, `"paused":true`) {
		t.Errorf("it comes back as %s", got)
	}
}

// asStandby has fleet.yaml declare the existing cluster as a standby of another management cluster, and returns the options of init for it.
func (e *existingCluster) asStandby(t *testing.T) session.Options {
	t.Helper()
	o := e.options(t, "admin")
	fleet := `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "` + e.git.URL + `", caFile: ca.pem}
  managementClusters:
  - name: mgmt
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
  standbys:
  - name: spare
    of: mgmt
    host: {type: existing, existing: {kubeconfig: "` + e.kubeconfig + `", context: admin}}
`
	if err := os.WriteFile(filepath.Join(e.dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Cluster = "spare"
	return o
}

// A management cluster that manages clusters is no standby, whatever fleet.yaml says: init says so before it stops its providers, or writes anything.
func TestStandbyHasNoWork(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	e.makeCluster(ctx, t)
	o, before := e.asStandby(t), e.namespaces(t)
	_, err := Init(ctx, e.deps, o)
	if err == nil || !strings.Contains(err.Error(), "spare manages clusters, team-a/alpha for one") || !strings.Contains(diag.Hint(err), "another host") {
		t.Errorf("init: %v, hint %q", err, diag.Hint(err))
	}
	if after := e.namespaces(t); !slices.Equal(before, after) {
		t.Errorf("namespaces are %q, were %q", after, before)
	}
	if claim, err := ownership.ReadClaim(ctx, e.client); err != nil || claim != nil {
		t.Errorf("it is claimed: %+v, %v", claim, err)
	}
	if _, err := e.deps.Store.Cluster("spare").Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is remembered: %v", err)
	}
	e.standsUntouched(ctx, t, "alpha")
}

// A standby on a cluster of the user's own is none after its teardown: nothing keeps anybody away, and what was stopped runs.
func TestStandbyIsTornDown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	target := e.withFlux(ctx, t)
	side := handover.Side{Name: target.Name, Client: e.client}
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
	if err := e.client.Create(ctx, stopped); err != nil {
		t.Fatal(err)
	}
	if err := e.client.Create(ctx, newWorkload("team-a", "early")); !apierrors.IsForbidden(err) {
		t.Errorf("a write to a standby: %v", err)
	}
	result, err := Teardown(ctx, e.deps, TeardownOptions{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(result.Plan.Steps, func(s string) bool { return strings.Contains(s, "a standby no more") }) {
		t.Errorf("the plan is %q", result.Plan.Steps)
	}
	if err := e.client.Create(ctx, newWorkload("team-a", "late")); err != nil {
		t.Errorf("a write after the teardown: %v", err)
	}
	if journal, err := handover.ReadJournal(ctx, e.client); err != nil || journal != nil {
		t.Errorf("the journal is left: %+v, %v", journal, err)
	}
	now := &appsv1.Deployment{}
	if err := e.client.Get(ctx, kube.Key{Namespace: stopped.Namespace, Name: stopped.Name}, now); err != nil || *now.Spec.Replicas != 1 || len(now.Annotations) != 0 {
		t.Errorf("what was stopped: %v, %d replicas, %v", err, *now.Spec.Replicas, now.Annotations)
	}
}

// A run that goes on refuses a management cluster that answers, as the one that began did.
func TestStandbyGoesOnBesideALivingOne(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newExistingCluster(t)
	living, err := e.take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	s := &session.Session{
		Deps: e.deps, Opts: session.Options{Dir: e.dir}, Fleet: living.Fleet, Mgmt: &v1alpha1.ManagementCluster{Name: "spare"}, StandbyOf: living.Mgmt.Name,
	}
	rest := &handover.Journal{Role: handover.RoleStandby, Phase: handover.PhaseFenced, Standby: &handover.Standby{Of: living.Mgmt.Name}}
	middle := &handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseCopied, Activates: true, Snapshot: "20260101T000000Z-abcdef", Source: handover.Party{Name: living.Mgmt.Name}, Before: rest,
	}
	for _, journal := range []*handover.Journal{rest, middle} {
		a := &activation{restore: newRestore(converge.NewRun(s)), opts: ActivateOptions{SourceIsGone: true}, journal: journal, result: &ActivateResult{}}
		if err := a.settle(ctx); err == nil || !strings.Contains(err.Error(), "answers at") {
			t.Errorf("%s: %v", journal.What(), err)
		}
	}
	tried := *middle
	tried.Tries = true
	a := &activation{
		restore: newRestore(converge.NewRun(s)), opts: ActivateOptions{HandOver: true, DryRun: true}, client: e.client, journal: &tried, result: &ActivateResult{},
	}
	if err := a.settle(ctx); err == nil || !strings.Contains(err.Error(), "was cut off") || !strings.Contains(diag.Hint(err), "fleetctl standby refresh spare") {
		t.Errorf("a dry run beside a try that was cut off: %v", err)
	}
}
