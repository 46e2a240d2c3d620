//go:build integration

package flux

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// What is there: what the Kustomizations flux-system, rests (which a user has suspended) and others have applied.
const rehearsed = `
apiVersion: v1
kind: Service
metadata: {name: kept, namespace: default, labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dropped, namespace: default, labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: spared
  namespace: default
  labels: {kustomize.toolkit.fluxcd.io/name: flux-system, kustomize.toolkit.fluxcd.io/namespace: flux-system}
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: anothers, namespace: default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-who-rests, namespace: default, labels: {kustomize.toolkit.fluxcd.io/name: rests, kustomize.toolkit.fluxcd.io/namespace: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system, annotations: {fleetctl.dev/suspended: "true"}}
spec: {interval: 10m, path: ./a, prune: true, suspend: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: rests, namespace: flux-system}
spec: {interval: 10m, path: ./b, prune: true, suspend: true, sourceRef: {kind: GitRepository, name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: channel, namespace: flux-system}
spec: {interval: 10m, path: ./c, prune: true, sourceRef: {kind: GitRepository, name: stable}}
`

// What Flux is to apply: each says in its label what comes of it.
const rehearsing = `
apiVersion: v1
kind: Service
metadata: {name: kept, namespace: default, labels: {what: refused}}
spec: {clusterIP: 10.0.0.77, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: kept, namespace: default, labels: {what: untold}, annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}
spec: {clusterIP: 10.0.0.77, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: kept, namespace: default, labels: {what: nothing}, annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}}
spec: {clusterIP: 10.0.0.77, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fine, namespace: default, labels: {what: nothing}}
---
apiVersion: v1
kind: Secret
metadata: {name: encrypted, namespace: default, labels: {what: nothing}}
data: {password: "ENC[AES256_GCM,data:x]"}
sops: {version: 3.9.0}
---
apiVersion: v1
kind: Namespace
metadata: {name: comes-too, labels: {what: nothing}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: comes-too, labels: {what: nothing}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: nowhere, labels: {what: untold}}
---
apiVersion: nonsuch.test/v1
kind: Nonsuch
metadata: {name: of-nowhere, namespace: default, labels: {what: untold}}
`

// A rehearsal names what the API server refuses and what Flux would delete, and leaves the cluster as it is.
func TestRehearse(t *testing.T) {
	c, _ := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(rehearsed), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	inventories := map[string][]string{
		"flux-system": {
			"default_kept__Service", "default_dropped__ConfigMap", "default_spared__ConfigMap", "default_anothers__ConfigMap",
			"default_gone__ConfigMap",
		},
		"rests": {"default_of-who-rests__ConfigMap"}, "channel": {"default_dropped__ConfigMap"},
	}
	for name, ids := range inventories {
		var entries []any
		for _, id := range ids {
			entries = append(entries, map[string]any{"id": id, "v": "v1"})
		}
		k := &unstructured.Unstructured{}
		k.SetGroupVersionKind(kustomizationKind)
		k.SetNamespace(Namespace)
		k.SetName(name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(k), k); err != nil {
			t.Fatal(err)
		}
		k.Object["status"] = map[string]any{"inventory": map[string]any{"entries": entries}}
		if err := c.Status().Update(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := kube.ParseYAML([]byte(rehearsing))
	if err != nil {
		t.Fatal(err)
	}
	var objects []ToApply
	want := map[string]int{}
	for _, obj := range parsed {
		objects = append(objects, ToApply{Unstructured: obj, By: systemKey})
		want[obj.GetLabels()["what"]]++
	}
	objects = append(objects, ToApply{Unstructured: parsed[0], By: kube.Key{Namespace: Namespace, Name: "rests"}})
	by := []kube.Key{systemKey, {Namespace: Namespace, Name: "rests"}, {Namespace: Namespace, Name: "not-there"}}
	found, err := NewSystem(c).Rehearse(ctx, objects, by, func(r kube.Ref) bool { return r.Name == "kept" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Deletes) != 1 || found.Deletes[0].Name != "dropped" {
		t.Errorf("it would delete %v", found.Deletes)
	}
	if len(found.Refused) != want["refused"] || !strings.Contains(found.Refused[0].Error(),
		"Service default/kept, which Kustomization flux-system/flux-system applies") {
		t.Errorf("refused: %v", found.Refused)
	}
	if len(found.Encrypted) != 1 || found.Encrypted[0].Name != "encrypted" {
		t.Errorf("encrypted: %v", found.Encrypted)
	}
	if len(found.Untold) != want["untold"] {
		t.Errorf("untold: %v", found.Untold)
	}
	for kind, key := range map[string]kube.Key{"ConfigMap": {Namespace: "default", Name: "fine"}, "Namespace": {Name: "comes-too"}} {
		ref := coreRef(kind, key)
		if there, err := c.Exists(ctx, ref.GroupVersionKind, ref.Key); err != nil || there {
			t.Errorf("a rehearsal made %s: %v", ref, err)
		}
	}
}

func coreRef(kind string, key kube.Key) kube.Ref {
	r := kube.Ref{Key: key}
	r.Version, r.Kind = "v1", kind
	return r
}
