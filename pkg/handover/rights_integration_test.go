//go:build integration

package handover

import (
	"context"
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
		if err == nil || !strings.Contains(err.Error(), "may not "+right.Verb+" "+right.Resource+" at it") {
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
