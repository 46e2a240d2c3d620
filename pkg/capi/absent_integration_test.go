//go:build integration

package capi

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A command that deletes a management cluster asks for its Clusters. "No such kind" means "no Clusters" only if no core provider was ever
// installed.
func TestNoSuchKindIsNoClustersOnlyWithoutACoreProvider(t *testing.T) {
	_, kubeconfig := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		there []string // manifests of existing objects
		trace string   // "" is a cluster without Cluster API
	}{
		"a new cluster": {nil, ""},
		"the kinds of a provider alone": {[]string{
			crdOf("dockerclusters", "DockerCluster", "infrastructure.cluster.x-k8s.io", "v1beta2"),
		}, ""},
		"an installation that was killed early": {[]string{
			crdOf("machines", "Machine", "cluster.x-k8s.io", "v1beta2"),
		}, ""},
		"an installation that was killed between its CRDs": {[]string{
			crdOf("clusters", "Cluster", "cluster.x-k8s.io", "v1beta2"),
		}, ""},
		"the CRDs were deleted": {[]string{
			coreNamespace, coreDeployment,
		}, "Deployment capi-system/capi-controller-manager"},
		"the CRDs were deleted, and the Deployment too": {[]string{
			crdOf("providers", "Provider", "clusterctl.cluster.x-k8s.io", "v1alpha3"),
			"{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Provider, metadata: {name: cluster-api, namespace: default}, providerName: " +
				"cluster-api, type: CoreProvider, version: v1.14.2}",
		}, "inventory has the core provider cluster-api"},
		"an older core provider, with other versions of the kinds": {[]string{
			crdOf("clusters", "Cluster", "cluster.x-k8s.io", "v1beta1"),
		}, "CRD clusters.cluster.x-k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := kube.New(kubeconfig, kube.Options{}) // a new client, which has not read any kinds
			if err != nil {
				t.Fatal(err)
			}
			for _, manifest := range tc.there {
				apply(ctx, t, c, manifest)
			}
			m, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			key := kube.Key{Namespace: "default", Name: "alpha"}
			for what, ask := range map[string]func() error{
				"Clusters":        func() error { _, err := m.Clusters(ctx); return err },
				"Cluster":         func() error { _, err := m.Cluster(ctx, key); return err },
				"WaitGone":        func() error { return m.WaitGone(ctx, key, nil) },
				"WaitUnprotected": func() error { return m.WaitUnprotected(ctx, key, nil) },
				"DeleteClusters":  func() error { return m.DeleteClusters(ctx, []kube.Key{key}, nil) },
			} {
				err := ask()
				untold, refused := errors.AsType[*UntoldError](err)
				switch {
				case tc.trace == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case tc.trace != "" && (!refused || !strings.Contains(untold.Trace, tc.trace)):
					t.Errorf("%s: got %v; want an error that names %s", what, err, tc.trace)
				case tc.trace != "" && (kube.IsAbsent(err) || diag.Hint(err) == ""):
					t.Errorf("%s: %v can be taken for an absence, or has no hint", what, err)
				}
			}
			for _, manifest := range slices.Backward(tc.there) {
				if manifest == coreNamespace { // no controller completes the deletion of namespaces here
					continue
				}
				if err := c.Delete(ctx, []*unstructured.Unstructured{asUnstructured(t, manifest)}, kube.DeleteOptions{Wait: true}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// If an aggregated API server serves Clusters and does not answer, this does not mean that there are none.
func TestDiscoveryThatFailsIsNoAbsence(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	apply(ctx, t, c, "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta2.cluster.x-k8s.io}, spec: {group: "+
		"cluster.x-k8s.io, version: v1beta2, "+
		"groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nobody}}}")
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if clusters, err := m.Clusters(ctx); err == nil || kube.IsAbsent(err) {
		t.Errorf("got %v, %v", clusters, err)
	}
	if _, err := m.Cluster(ctx, kube.Key{Namespace: "default", Name: "alpha"}); err == nil || kube.IsAbsent(err) {
		t.Errorf("got %v", err)
	}
}

// A client that has read the kind gets the error "no such path" after its CRD is deleted.
func TestKindThatGoesAwayIsNoAbsence(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, name := range []string{"Cluster", "Machine"} {
		apply(ctx, t, c, crdOf(strings.ToLower(name)+"s", name, "cluster.x-k8s.io", "v1beta2"))
	}
	apply(ctx, t, c, coreNamespace)
	apply(ctx, t, c, coreDeployment)
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if clusters, err := m.Clusters(ctx); err != nil || len(clusters) != 0 {
		t.Fatalf("got %v, %v", clusters, err)
	}
	key := kube.Key{Namespace: "default", Name: "alpha"}
	if found, err := m.Cluster(ctx, key); err != nil || found != nil {
		t.Fatalf("got %v, %v", found, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: clusterCRD}}
	if err := c.Delete(ctx, []*unstructured.Unstructured{asUnstructured(t, crdOf("clusters", "Cluster", "cluster.x-k8s.io", "v1beta2"))},
		kube.DeleteOptions{Wait: true}); err != nil {
		t.Fatalf("delete %s: %v", crd.Name, err)
	}
	// The API server takes a moment to stop serving the kind.
	for {
		err := c.List(ctx, &clusterv1.ClusterList{})
		if kube.IsAbsent(err) {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("still served: %v", err)
		}
	}
	for what, ask := range map[string]func() error{
		"Clusters": func() error { _, err := m.Clusters(ctx); return err },
		"Cluster":  func() error { _, err := m.Cluster(ctx, key); return err },
	} {
		if _, refused := errors.AsType[*UntoldError](ask()); !refused {
			t.Errorf("%s: got %v", what, ask())
		}
	}
}

const (
	coreNamespace  = "{apiVersion: v1, kind: Namespace, metadata: {name: capi-system}}"
	coreDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: capi-controller-manager, namespace: capi-system, labels: " +
		"{cluster.x-k8s.io/provider: cluster-api}}, " +
		"spec: {selector: {matchLabels: {app: capi}}, template: {metadata: {labels: {app: capi}}, spec: {containers: [{name: manager, image: " +
		"manager}]}}}}"
)

func crdOf(plural, kind, group, version string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` + plural + "." + group +
		`}, spec: {group: ` + group +
		`, scope: Namespaced, names: {plural: ` + plural + `, kind: ` + kind + `}, versions: [{name: ` + version +
		`, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
}

func asUnstructured(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objects, err := kube.ParseYAML([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

func apply(ctx context.Context, t *testing.T, c *kube.Client, manifest string) {
	t.Helper()
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(manifest), kube.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
}
