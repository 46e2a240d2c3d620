package standingtest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FollowSomething sets a Flux up that somebody else has made: its kinds, and what it follows. Without a URL it follows nothing.
func (c *Cluster) FollowSomething(ctx context.Context, t *testing.T, url, branch, path string) {
	t.Helper()
	for plural, kind := range map[string]string{
		"gitrepositories": "GitRepository", "kustomizations": "Kustomization",
		"fluxinstances": "FluxInstance",
	} {
		group := map[string]string{
			"GitRepository": "source.toolkit.fluxcd.io", "Kustomization": "kustomize.toolkit.fluxcd.io",
			"FluxInstance": "fluxcd.controlplane.io",
		}[kind]
		c.Apply(ctx, t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: `+plural+`.`+group+
			`}, spec: {group: `+group+
			`, scope: Namespaced, names: {plural: `+plural+`, kind: `+kind+
			`}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {`+
			`type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	}
	c.Apply(ctx, t, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	if url == "" {
		return
	}
	c.Apply(ctx, t, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system}, "+
		"spec: {url: '"+url+"', interval: 1m, ref: {branch: "+branch+"}}}")
	c.Apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: flux-system, namespace: "+
		"flux-system}, spec: {path: ./"+path+
		", interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}, status: {lastAppliedRevision: "+
		"'main@sha1:1111111111111111111111111111111111111111', inventory: {entries: ["+
		"{id: default_theirs__ConfigMap, v: v1}, {id: flux-system_flux-system_source.toolkit.fluxcd.io_GitRepository, v: v1}, {id: "+
		"flux-system_clusters_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}]}}}")
	c.Apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: clusters, namespace: flux-system, "+
		"labels: {kustomize.toolkit.fluxcd.io/name: flux-system}}, spec: {path: ./clusters, prune: true, sourceRef: {kind: GitRepository, "+
		"name: flux-system}}, status: {inventory: {entries: ["+
		"{id: default_child__ConfigMap, v: v1}]}}}")
	for _, name := range []string{"theirs", "child"} {
		c.Apply(ctx, t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "+name+"}}")
	}
}

// Follows sets a Flux up that follows the folder of the management cluster at that address, and has applied a commit of it.
func (c *Cluster) Follows(ctx context.Context, t *testing.T, from, commit string) {
	t.Helper()
	c.Apply(ctx, t, "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system}, "+
		"spec: {url: '"+from+"', interval: 1m, ref: {branch: main}}}")
	status := ""
	if commit != "" {
		status = ", status: {lastAppliedRevision: 'main@sha1:" + commit + "', inventory: {entries: []}}"
	}
	c.Apply(ctx, t, "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: flux-system, namespace: "+
		"flux-system}, spec: {path: ./providers/docker/v1/mgmt"+
		", interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}"+status+"}")
}

// ForgetFlux deletes what Flux follows.
func (c *Cluster) ForgetFlux(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, ref := range []struct{ group, kind string }{
		{"kustomize.toolkit.fluxcd.io", "Kustomization"},
		{"source.toolkit.fluxcd.io", "GitRepository"},
		{"fluxcd.controlplane.io", "FluxInstance"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(ref.group + "/v1")
		list.SetKind(ref.kind + "List")
		if err := c.Client.List(ctx, list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if err := c.Client.WithWatch.Delete(ctx, &list.Items[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}
