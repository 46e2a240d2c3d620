//go:build integration

package capi

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// brokenImage is an image that never runs.
const brokenImage = "example.com/broken:v1"

var allProviders = []releases.Provider{{Name: "docker"}}

// withClusterCRDs adds Cluster API's real CRDs to the core provider of a test repository.
func withClusterCRDs(t *testing.T, root string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "cluster-api", "v1.14.2", "core-components.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clusters", "machines", "machinesets", "machinedeployments", "machinepools", "clusterclasses"} {
		crd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "core", "config", "crd", "bases", "cluster.x-k8s.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		content = append(append(content, "\n---\n"...), bytes.Replace(crd, []byte("  annotations:\n"),
			[]byte("  labels: {cluster.x-k8s.io/v1beta1: v1beta1, cluster.x-k8s.io/v1beta2: v1beta2}\n  annotations:\n"), 1)...)
	}
	releasestest.WriteFile(t, file, string(content))
}

// newManagement returns a management cluster whose controllers are simulated by the test, and a repository to install from.
func newManagement(t *testing.T) (*Manager, *kube.Client, *releases.Source) {
	t.Helper()
	return newManagementFrom(t, newRepository(t))
}

// newManagementFrom is newManagement with the repository in root.
func newManagementFrom(t *testing.T, root string) (*Manager, *kube.Client, *releases.Source) {
	t.Helper()
	c, _ := kubetest.Start(t)
	m, source := managementOf(t, c, root)
	return m, c, source
}

// newRepository returns a repository with everything that allProviders need.
func newRepository(t *testing.T) string {
	t.Helper()
	root := releasestest.Repository(t)
	withClusterCRDs(t, root)
	return root
}

// managementOf is newManagementFrom for the API server that c talks to.
func managementOf(t *testing.T, c *kube.Client, root string) (*Manager, *releases.Source) {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	playControllers(t, c)
	return m, newSource(t, releases.SourceOptions{Repository: root})
}

// playControllers simulates the controllers of a cluster: Deployments become available, and Certificates get their Secrets.
func playControllers(t *testing.T, c *kube.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	t.Cleanup(func() { cancel(); <-done; <-done })
	play := func(gvk schema.GroupVersionKind, act func(*unstructured.Unstructured) error) {
		defer func() { done <- struct{}{} }()
		for ctx.Err() == nil {
			err := c.Watch(ctx, gvk, kube.Selection{}, func(objects kube.Objects) (bool, error) {
				for _, obj := range objects {
					if err := act(obj); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
						return false, err
					}
				}
				return false, nil
			})
			if ctx.Err() == nil && !kube.IsAbsent(err) {
				t.Errorf("play %s controller: %v", gvk.Kind, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	go play(kube.DeploymentKind, func(obj *unstructured.Unstructured) error {
		observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		if observed == obj.GetGeneration() {
			return nil
		}
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, kube.RefOf(obj).Key, d); err != nil {
			return client.IgnoreNotFound(err)
		}
		replicas := *d.Spec.Replicas
		if d.Spec.Template.Spec.Containers[0].Image == brokenImage {
			replicas = 0
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		return c.Status().Update(ctx, d)
	})
	go play(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, func(obj *unstructured.Unstructured) error {
		name, _, _ := unstructured.NestedString(obj.Object, "spec", "secretName")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: name}}
		if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func resolve(t *testing.T, source *releases.Source, providers []releases.Provider) []releases.Provider {
	t.Helper()
	all, err := source.Resolve(t.Context(), providers)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func newSource(t *testing.T, opts releases.SourceOptions) *releases.Source {
	t.Helper()
	source, err := releases.NewSource(opts)
	if err != nil {
		t.Fatal(err)
	}
	return source
}
