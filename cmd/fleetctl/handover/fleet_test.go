//go:build e2e

package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// deployments are the programs of a management cluster, with the provider that clusterctl's inventory has for it; Flux's are in none.
var deployments = []struct{ namespace, name, provider, providerType string }{
	{"capi-system", "capi-controller-manager", "cluster-api", "CoreProvider"},
	{"capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-controller-manager", "kubeadm", "BootstrapProvider"},
	{"capi-kubeadm-control-plane-system", "capi-kubeadm-control-plane-controller-manager", "kubeadm", "ControlPlaneProvider"},
	{"capd-system", "capd-controller-manager", "docker", "InfrastructureProvider"},
	{"cert-manager", "cainjector", "", ""},
	{"flux-system", "source-controller", "", ""},
	{"flux-system", "kustomize-controller", "", ""},
	{"flux-system", "helm-controller", "", ""},
}

// manifestLabel is the provider's name in the label that clusterctl sets on the objects that it installs.
func manifestLabel(name, providerType string) string {
	switch providerType {
	case "BootstrapProvider":
		return "bootstrap-" + name
	case "ControlPlaneProvider":
		return "control-plane-" + name
	case "InfrastructureProvider":
		return "infrastructure-" + name
	}
	return name
}

// seeder puts manifests into a side, with their status. An owner in a manifest becomes the object of that name.
type seeder struct {
	side *side
	uids map[string]types.UID
}

func newSeeder(s *side) *seeder { return &seeder{side: s, uids: map[string]types.UID{}} }

// management makes the side a management cluster: namespaces, the providers' inventory and Deployments, and Flux's.
func (s *seeder) management(ctx context.Context, t testing.TB) {
	t.Helper()
	for _, d := range deployments {
		s.namespace(ctx, t, d.namespace)
		labels := map[string]any{"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/component": d.name}
		if d.provider != "" {
			labels = s.inventory(ctx, t, d.namespace, d.provider, d.providerType)
		}
		selector := map[string]any{"app": d.name}
		s.create(ctx, t, object("apps/v1", "Deployment", d.namespace, d.name, map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"replicas": int64(1),
				"selector": map[string]any{"matchLabels": selector},
				"template": map[string]any{
					"metadata": map[string]any{"labels": selector},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "manager", "image": d.name + ":v1"}}},
				},
			},
		}))
	}
}

// inventory has clusterctl's inventory name a provider, and returns the labels of what belongs to it.
func (s *seeder) inventory(ctx context.Context, t testing.TB, namespace, name, providerType string) map[string]any {
	t.Helper()
	s.namespace(ctx, t, namespace)
	label := manifestLabel(name, providerType)
	labels := func() map[string]any {
		return map[string]any{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": label}
	}
	s.create(ctx, t, object("clusterctl.cluster.x-k8s.io/v1alpha3", "Provider", namespace, label, map[string]any{
		"metadata": map[string]any{"labels": labels()}, "providerName": name, "type": providerType, "version": "v1.14.2",
	}))
	return labels()
}

func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: content}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func (s *seeder) namespace(ctx context.Context, t testing.TB, name string) {
	t.Helper()
	err := s.side.request(ctx, http.MethodPost, "/api/v1/namespaces", []byte(`{"metadata":{"name":"`+name+`"}}`), nil)
	if err != nil && !hasCode(err, http.StatusConflict) {
		t.Fatal(err)
	}
}

// file creates the objects in a file of testdata. values are pairs: a word in capitals, and the value that replaces this word.
func (s *seeder) file(ctx context.Context, t testing.TB, name string, values ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(values...).Replace(string(content))
	for document := range bytes.SplitSeq([]byte(text), []byte("\n---\n")) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &obj.Object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if obj.GetNamespace() != "" {
			s.namespace(ctx, t, obj.GetNamespace())
		}
		s.create(ctx, t, obj)
	}
}

func uidKey(apiVersion, kind, namespace, name string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return strings.Join([]string{group, kind, namespace, name}, " ")
}

// create creates obj and writes its status. What a topology owns is applied as its controller does.
func (s *seeder) create(ctx context.Context, t testing.TB, obj *unstructured.Unstructured) {
	t.Helper()
	owners := obj.GetOwnerReferences()
	for i, o := range owners {
		uid := s.uids[uidKey(o.APIVersion, o.Kind, obj.GetNamespace(), o.Name)]
		if uid == "" {
			uid = s.uids[uidKey(o.APIVersion, o.Kind, "", o.Name)]
		}
		if uid == "" {
			t.Errorf("%s %s/%s: its owner %s %s is not there yet", obj.GetKind(), obj.GetNamespace(), obj.GetName(), o.Kind, o.Name)
		}
		owners[i].UID = uid
	}
	if len(owners) > 0 {
		obj.SetOwnerReferences(owners)
	}
	group, _, found := strings.Cut(obj.GetAPIVersion(), "/")
	if !found {
		group = ""
	}
	if group == "" && obj.GetKind() == "Secret" {
		hideCanary(t, obj)
	}
	r := s.side.resourceOf(t, group, obj.GetKind())
	status, hasStatus := obj.Object["status"]
	body, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	created := &unstructured.Unstructured{}
	if _, owned := obj.GetLabels()["topology.cluster.x-k8s.io/owned"]; owned && obj.GetKind() != "Cluster" {
		path := r.path(obj.GetNamespace(), obj.GetName()) + "?fieldManager=capi-topology&force=true"
		err = s.side.request(ctx, http.MethodPatch, path, body, &created.Object, "Content-Type", "application/apply-patch+yaml")
	} else {
		err = s.side.request(ctx, http.MethodPost, r.path(obj.GetNamespace(), "")+"?fieldValidation=Strict", body, &created.Object)
	}
	if err != nil {
		t.Errorf("create %s %s: %v", obj.GetKind(), obj.GetName(), err)
		return
	}
	s.uids[uidKey(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName())] = created.GetUID()
	if !hasStatus {
		return
	}
	created.Object["status"] = status
	body, err = json.Marshal(created)
	if err != nil {
		t.Fatal(err)
	}
	path := r.path(obj.GetNamespace(), obj.GetName()) + "/status?fieldValidation=Strict"
	if err := s.side.request(ctx, http.MethodPut, path, body, nil); err != nil {
		t.Errorf("write the status of %s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}

// copyUIDs lets several seeders have owners that one has made.
func (s *seeder) copyUIDs() map[string]types.UID { return maps.Clone(s.uids) }

// stockFleet is what clusterctl can move: one plain cluster and one with a topology, in a namespace each.
func (s *seeder) stockFleet(ctx context.Context, t testing.TB) {
	t.Helper()
	s.file(ctx, t, "shared.yaml", "NAMESPACE", "team-a")
	s.file(ctx, t, "plain.yaml", "NAMESPACE", "team-a", "NAME", "alpha")
	s.file(ctx, t, "topology.yaml", "NAMESPACE", "team-b", "NAME", "beta", "CLASS", "quick")
}

// fleet is stockFleet and what clusterctl refuses or leaves behind.
func (s *seeder) fleet(ctx context.Context, t testing.TB) {
	t.Helper()
	s.stockFleet(ctx, t)
	s.file(ctx, t, "paused.yaml", "NAMESPACE", "team-c", "NAME", "gamma")
	s.file(ctx, t, "flux.yaml")
}
