//go:build integration

package masters

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// TestFinishTidiesAll: after pull requests were merged, finish removes the parent's notes that keep its Flux off handed-over clusters. It
// does so for each cluster that the fleet repo has at the new management cluster, not only for the cluster under it.
func TestFinishTidiesAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := openMasters(t, mastersFleet)
	if err := os.WriteFile(filepath.Join(r.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(fleetID), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"eu", "early"} {
		e, err := r.Transfer(fleetrepo.TransferOptions{Cluster: cluster, To: "eu"})
		r = apply(t, r, e, err)
	}
	d := deps(t)
	root, eu := standing(ctx, t, d, r.Dir, "root"), standing(ctx, t, d, r.Dir, "eu")
	released := func(on *kube.Client, name, annotations, suspended string) {
		t.Helper()
		applyYAML(ctx, t, on, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
		applyYAML(ctx, t, on,
			"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: "+name+", name: "+name+", annotations: {"+annotations+
				"}}, spec: {suspend: "+suspended+
				"}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True', reason: Fine, message: fine, observedGeneration: 1}]}}")
	}
	for _, name := range []string{"eu", "early"} {
		released(eu, name, "", "false")
		applyYAML(ctx, t, eu, "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: "+name+", name: "+name+
			", labels: {helm.toolkit.fluxcd.io/name: "+name+", helm.toolkit.fluxcd.io/namespace: "+name+
			"}}, spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestCluster, name: "+name+"}}}")
	}
	for _, name := range []string{"eu", "early", "other"} {
		released(root, name, "fleetctl.dev/let-go: 'true', fleetctl.dev/let-go-for: "+name+"/"+name+"-kubeconfig", "true")
	}
	m := &master{
		Deps: d, opts: Options{BootstrapOptions: lifecycle.BootstrapOptions{Options: session.Options{Dir: r.Dir}}, Master: masterOf(t, r)},
		result: &Result{Cluster: "eu", Parent: "root"},
	}
	if err := m.finish(ctx); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"eu": false, "early": false, "other": true} {
		release := &unstructured.Unstructured{}
		release.SetAPIVersion("helm.toolkit.fluxcd.io/v2")
		release.SetKind("HelmRelease")
		err := root.Get(ctx, kube.Key{Namespace: name, Name: name}, release)
		if err != nil && !kube.IsAbsent(err) {
			t.Fatal(err)
		}
		if there := err == nil; there != want {
			t.Errorf("at the parent, the HelmRelease of %s is there: %t", name, there)
		}
		if name == "other" {
			continue
		}
		if err := eu.Get(ctx, kube.Key{Namespace: name, Name: name}, release); err != nil {
			t.Errorf("at the new one: %v", err)
		}
	}
}

// standing is a management cluster of the fleet, an API server with the kinds of Cluster API and Flux, that this machine is connected to.
func standing(ctx context.Context, t *testing.T, d management.Deps, dir, name string) *kube.Client {
	t.Helper()
	client, kubeconfig := kubetest.Start(t)
	kubetest.ClusterAPI(t, client, "clusters", "machines")
	for _, kind := range []struct{ group, version, plural, kind string }{
		{"source.toolkit.fluxcd.io", "v1", "gitrepositories", "GitRepository"},
		{"kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization"},
		{"helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease"},
	} {
		applyYAML(ctx, t, client,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: `+kind.plural+`.`+kind.group+`}, spec: {group: `+
				kind.group+
				`, scope: Namespaced, names: {plural: `+kind.plural+`, kind: `+kind.kind+`}, versions: [{name: `+kind.version+
				`, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)
	}
	applyYAML(ctx, t, client, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	applyYAML(ctx, t, client,
		"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system}, spec: {url: "+
			"'https://127.0.0.1:1/fleet.git', interval: 1m}}")
	if err := (&ownership.Claim{
		Fleet: fleetID, Name: "masters", Cluster: name, URL: "https://127.0.0.1:1/fleet.git", Branch: "main",
		Confirmed: true,
	}).Create(ctx, client); err != nil {
		t.Fatal(err)
	}
	cluster := d.Store.Cluster(name)
	way := cluster.Path("way")
	for _, file := range []string{way, cluster.Path(management.KubeconfigFile)} {
		if err := kube.WriteKubeconfig(file, kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Save(state.Record{
		Name: name, Fleet: "masters", FleetID: fleetID, Repo: dir, GitURL: "https://127.0.0.1:1/fleet.git", HostType: "existing", Connected: true,
		KubeconfigSource: way, Context: kube.CurrentContext(kubeconfig),
	}); err != nil {
		t.Fatal(err)
	}
	return client
}

func applyYAML(ctx context.Context, t *testing.T, client *kube.Client, manifest string) {
	t.Helper()
	if _, err := kubetest.ApplyYAML(ctx, client, []byte(manifest), kube.ApplyOptions{FieldManager: "test", ForceConflicts: true}); err != nil {
		t.Fatal(err)
	}
}
