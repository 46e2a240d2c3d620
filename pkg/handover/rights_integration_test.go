//go:build integration

package handover

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// Missing permissions of a kubeconfig's user are reported before anything is changed.
func TestRights(t *testing.T) {
	admin, _ := kubetest.Start(t)
	ctx := t.Context()
	if err := (&side{Side: Side{Name: "it", Client: admin}}).ready(ctx); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "some"}}
	token := &authenticationv1.TokenRequest{}
	if err := admin.Create(ctx, account); err != nil {
		t.Fatal(err)
	}
	if err := admin.SubResource("token").Create(ctx, account, token); err != nil {
		t.Fatal(err)
	}
	config := admin.Config()
	config.BearerToken, config.CertData, config.KeyData = token.Status.Token, nil, nil
	some, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = (&side{Side: Side{Name: "it", Client: some}}).ready(ctx)
	for _, right := range needed() {
		said := regexp.MustCompile(`may not ([a-z]+, )*` + right.Verb + `(, [a-z]+)* ` + right.Resource + ` at it`)
		if err == nil || !said.MatchString(err.Error()) {
			t.Errorf("who may nothing: %v is not said of: %v", right, err)
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "some"}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "cluster-admin",
		},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "some"}},
	}
	if err := admin.Create(ctx, binding); err != nil {
		t.Fatal(err)
	}
	err = kube.Retry(ctx, func(ctx context.Context) error { // the API server learns of it a moment later
		if err := (&side{Side: Side{Name: "it", Client: some}}).ready(ctx); err != nil {
			return apierrors.NewTimeoutError(err.Error(), 0)
		}
		return nil
	})
	if err != nil {
		t.Errorf("one who got all rights: %v", err)
	}
	other := admin.Config()
	other.Impersonate.UserName = "another"
	as, err := kube.NewForConfig(other, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = (&side{Side: Side{Name: "it", Client: as}}).ready(ctx)
	if err == nil || !strings.Contains(err.Error(), "already impersonates another") {
		t.Errorf("a kubeconfig that impersonates: %v", err)
	}
}

// What needed names is enough for everything that a hand-over does as the user of the kubeconfig: a user who lacks a right for a later step
// is refused before the first one, and does not leave a fence that it cannot take down. Nobody but the fence denies the probe.
func TestNeededRightsAreEnough(t *testing.T) {
	admin, _ := kubetest.Start(t)
	ctx := t.Context()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}}
	for _, right := range needed() {
		rule := rbacv1.PolicyRule{APIGroups: []string{right.Group}, Resources: []string{right.Resource}, Verbs: []string{right.Verb}}
		if right.Name != "" {
			rule.ResourceNames = []string{right.Name}
		}
		role.Rules = append(role.Rules, rule)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "narrow"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "narrow"}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "narrow"}}
	token := &authenticationv1.TokenRequest{}
	if err := errors.Join(admin.Create(ctx, role), admin.Create(ctx, binding), admin.Create(ctx, account)); err != nil {
		t.Fatal(err)
	}
	if err := admin.SubResource("token").Create(ctx, account, token); err != nil {
		t.Fatal(err)
	}
	config := admin.Config()
	config.BearerToken, config.CertData, config.KeyData = token.Status.Token, nil, nil
	narrow, err := kube.NewForConfig(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	it := &side{Side: Side{Name: "it", Client: narrow}}
	err = kube.Retry(ctx, func(ctx context.Context) error { // the API server learns of the role a moment later
		if err := it.ready(ctx); err != nil {
			return apierrors.NewTimeoutError(err.Error(), 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		manifest := "{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind + ", metadata: {name: provider}, webhooks: [{name: " +
			"it.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {url: " +
			"'https://127.0.0.1:9/'}, rules: [{apiGroups: [cluster.x-k8s.io], apiVersions: ['*'], resources: ['*'], operations: ['*']}]}]}"
		if _, err := kubetest.ApplyYAML(ctx, admin, []byte(manifest), kube.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	j := &Journal{FormatVersion: "1", ID: "a", Role: RoleSource, Phase: PhasePlanned, Runner: "first"}
	if err := it.put(ctx, j); err != nil {
		t.Fatal(err)
	}
	if it.as, err = narrow.As(j.user(), administrators); err != nil {
		t.Fatal(err)
	}
	if denied(probe(ctx, narrow)) {
		t.Error("the probe is denied without a fence")
	}
	rest := j.last()
	rest.Phase, rest.version = PhaseReleased, j.version
	fence := policy{user: j.user(), groups: []string{"cluster.x-k8s.io"}, command: "fleetctl pivot"}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"put up the fence", func() error { return it.raise(ctx, fence) }},
		{"take over the fence of an earlier run", func() error { return it.raise(ctx, fence) }},
		{"edit webhooks", func() error { return it.bypass(ctx, fence.groups, "") }},
		{"give webhooks back", func() error { return it.restoreWebhooks(ctx) }},
		{"take the fence down", func() error { return it.lower(ctx) }},
		{"go on in the journal", func() error { return it.put(ctx, rest) }},
		{"delete the journal", func() error { return it.journal.drop(ctx, narrow) }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}
