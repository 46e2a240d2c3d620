//go:build integration

package leaving_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

type heard struct {
	progress.Reporter

	warnings string
}

func (h *heard) Warn(text string) { h.warnings += text + "\n" }

// A policy that denies changes of Clusters keeps a cluster from being detached, but no abort from undoing a detachment.
func TestAbortOfADetachmentIsNotRefusedByAPolicy(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "early")); err != nil {
		t.Fatal(err)
	}
	e.Apply(ctx, t, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: stay}, spec: {
matchConstraints: {resourceRules: [
 {apiGroups: [cluster.x-k8s.io], apiVersions: ["*"], operations: [UPDATE, DELETE], resources: [clusters]}]},
validations: [{expression: "false", message: "not here, says the team"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: stay},
spec: {policyName: stay, validationActions: [Deny]}}
`)
	o := leaving.DetachOptions{Target: target, Cluster: "early", DryRun: true}
	var refused error // the API server learns of the policy a moment later
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, refused = leaving.Detach(ctx, e.Deps, o)
		return refused != nil, nil
	})
	if err != nil || !strings.Contains(refused.Error(), "not here, says the team") {
		t.Fatalf("a dry run: %v, %v", refused, err)
	}
	o.DryRun, o.Abort = false, true
	if r, err := leaving.Detach(ctx, e.Deps, o); err != nil || r.Outcome != "undone" {
		t.Errorf("an abort: %+v, %v (%s)", r, err, diag.Hint(err))
	}
}

// Whoever may read everything sees which machines would stay, and hears that this user cannot detach the cluster. The detachment itself is
// refused before it changes anything.
func TestDryRunOfADetachmentByAReader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	target := e.WithFlux(ctx, t)
	if err := e.Client.Create(ctx, standingtest.NewWorkload("team-a", "early")); err != nil {
		t.Fatal(err)
	}
	asReader(ctx, t, e)
	said := &heard{Reporter: progress.Discard}
	deps := e.Deps
	deps.Report = said
	o := leaving.DetachOptions{Target: target, Cluster: "early", DryRun: true}
	if r, err := leaving.Detach(ctx, deps, o); err != nil || r.Outcome != "planned" {
		t.Errorf("a dry run: %+v, %v (%s)", r, err, diag.Hint(err))
	}
	for _, says := range []string{"cannot detach", "was not tried", "may not impersonate", "give a kubeconfig of an administrator"} {
		if !strings.Contains(said.warnings, says) {
			t.Errorf("a dry run does not say %q: %s", says, said.warnings)
		}
	}
	o.DryRun = false
	o.Confirm = func(*leaving.DetachResult) error { t.Error("it asks"); return nil }
	if r, err := leaving.Detach(ctx, deps, o); err == nil || !strings.Contains(err.Error(), "may not impersonate") {
		t.Errorf("the detachment: %+v, %v", r, err)
	}
}

// asReader makes this machine's access to the management cluster that of a user who may only read.
func asReader(ctx context.Context, t *testing.T, e *standingtest.Cluster) {
	t.Helper()
	admin := e.Client
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reader"}}
	token := &authenticationv1.TokenRequest{}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
	}
	for _, create := range []func() error{
		func() error { return admin.Create(ctx, account) },
		func() error { return admin.SubResource("token").Create(ctx, account, token) },
		func() error { return admin.Create(ctx, role) },
		func() error { return admin.Create(ctx, binding) },
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.LoadFromFile(e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos[config.Contexts["admin"].AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	if err := clientcmd.WriteToFile(*config, e.Kubeconfig); err != nil {
		t.Fatal(err)
	}
}
