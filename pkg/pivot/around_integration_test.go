//go:build integration

package pivot

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// An abort in the middle of Velero's restore is refused: running providers would act on the objects that Velero still restores.
func TestNoAbortWhileVeleroRestores(t *testing.T) {
	client, _ := kubetest.Start(t)
	ctx := t.Context()
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "restores.velero.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: restoreKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "restores", Singular: "restore", Kind: "Restore", ListKind: "RestoreList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: restoreKind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes},
				},
			}},
		},
	}
	if err := undoable(ctx, client); err != nil {
		t.Fatalf("nothing is under way: %v", err)
	}
	if err := client.Create(ctx, crd); err != nil {
		t.Fatal(err)
	}
	restore := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "InProgress"}}}
	restore.SetGroupVersionKind(restoreKind)
	restore.SetNamespace("default")
	restore.SetName("nightly")
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return client.Create(ctx, restore.DeepCopy()) == nil, nil // until the API server serves the kind
	})
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(&handover.Journal{FormatVersion: "1", Role: handover.RoleTarget, Phase: handover.PhaseFenced, Around: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	err = client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": content},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := undoable(ctx, client); diag.Code(err) != diag.ExitNotReady || !strings.Contains(err.Error(), "nightly") {
		t.Errorf("Velero is at it: %v", err)
	}
	if err := client.WithWatch.Delete(ctx, restore); err != nil {
		t.Fatal(err)
	}
	if err := undoable(ctx, client); err != nil {
		t.Errorf("Velero is not at it any more: %v", err)
	}
}
