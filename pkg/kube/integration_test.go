//go:build integration

package kube_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

var configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func TestAPIServer(t *testing.T) {
	c, kubeconfig := kubetest.Start(t)
	t.Run("established on a busy machine", func(t *testing.T) {
		t.Parallel()
		establishedOnABusyMachine(t, kubeconfig)
		appliedOnABusyMachine(t, kubeconfig)
	})
	for name, test := range map[string]func(*testing.T, *kube.Client){
		"apply in stages":      applyInStages,
		"apply conflict":       applyConflict,
		"apply tries all":      applyTriesAll,
		"apply waits for CRD":  applyWaitsForCRD,
		"delete":               deleteObjects,
		"wait for":             waitFor,
		"watch survives":       watchSurvivesCompaction,
		"deployments":          deployments,
		"deployments time out": deploymentsTimeOut,
		"webhook gate":         webhookGate,
		"scheme and version":   schemeAndVersion,
		"list pages":           listPages,
		"brief writes":         briefWrites,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// crdManifest returns a manifest in the wrong order: an object of the kind, its CRD and its namespace.
func crdManifest(kind, group string) []byte {
	plural := strings.ToLower(kind) + "s"
	return fmt.Appendf(nil, `
apiVersion: %[2]s/v1
kind: %[1]s
metadata: {name: one, namespace: %[3]s-ns}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[2]s}
spec:
  group: %[2]s
  names: {kind: %[1]s, plural: %[3]s}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[3]s-ns}
`, kind, group, plural)
}

func schemeAndVersion(t *testing.T, c *kube.Client) {
	version, err := c.ServerVersion(t.Context())
	if err != nil || !strings.HasPrefix(version, "v1.") {
		t.Errorf("version %q, %v", version, err)
	}
	wider, err := c.WithScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := wider.Get(t.Context(), kube.Key{Name: "default"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	if _, err := c.SecretValue(t.Context(), kube.Key{Namespace: "default", Name: "nonsuch"}, "value"); !kube.IsAbsent(err) {
		t.Errorf("got %v for a Secret that does not exist", err)
	}
}
