//go:build integration

package flux

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// forgotten: a Kustomization that is deleted in the middle of an attempt at an API server that never answers goes at once, if it leaves
// what it made. It keeps the finalizers of others.
func forgotten(ctx context.Context, t *testing.T, client *kube.Client, system *System) {
	const namespace, foreign = "dead", "example.com/other"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	asked := make(chan net.Conn, 1)
	go func() {
		for {
			conn, err := listener.Accept() // and never a word
			if err != nil {
				return
			}
			select {
			case asked <- conn:
			default:
			}
		}
	}()
	if _, err := kubetest.ApplyYAML(ctx, client, fmt.Appendf(nil, `
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
apiVersion: v1
kind: Secret
metadata: {name: kubeconfig, namespace: %[1]s}
stringData:
  value: |
    {apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://%[2]s", insecure-skip-tls-verify: true}}],
     users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: hangs, namespace: %[1]s}
spec: {interval: 1h, timeout: 10m, prune: true, deletionPolicy: Orphan, path: ./clusters, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}, kubeConfig: {secretRef: {name: kubeconfig}}}
`, namespace, listener.Addr()), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Fatal("kustomize-controller has not asked the cluster within 30 s")
	}
	ref := kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: namespace, Name: "hangs"}}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	if err := client.Get(ctx, ref.Key, obj); err != nil {
		t.Fatal(err)
	}
	if err := system.patch(ctx, ref,
		map[string]any{"metadata": map[string]any{"finalizers": append(obj.GetFinalizers(), foreign)}}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(ctx, []*unstructured.Unstructured{obj}, kube.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held := func(limit time.Duration) error {
		short, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return system.WaitForgotten(short, namespace, nil)
	}
	if err := held(3 * time.Second); err == nil {
		t.Error("what somebody else's finalizer holds is gone")
	}
	if err := client.Get(ctx, ref.Key, obj); err != nil || len(obj.GetFinalizers()) != 1 || obj.GetFinalizers()[0] != foreign {
		t.Errorf("finalizers: %v, %v; want those of others alone", obj.GetFinalizers(), err)
	}
	if err := system.patch(ctx, ref, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
		t.Fatal(err)
	}
	if err := held(10 * time.Second); err != nil {
		t.Errorf("nothing holds it any more: %v", err)
	}
}
