//go:build integration

package flux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// The real source-, kustomize- and helm-controller follow a real Git server and work on a real API server.
func TestFluxFollowsARepo(t *testing.T) {
	client, kubeconfig := kubetest.Start(t)
	system := NewSystem(client)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	report, err := system.Status(ctx)
	if err != nil || report.Installed || report.Healthy() {
		t.Fatalf("status before Flux: got %+v, %v", report, err)
	}
	if err := system.ReconcileSources(ctx); err != nil {
		t.Errorf("ask Flux to look, where there is none: %v", err)
	}
	if err := system.Reconcile(ctx); err == nil || diag.Hint(err) == "" {
		t.Errorf("reconcile before Flux: got %v, want an error with a hint", err)
	}
	installCRDs(ctx, t, client)
	startControllers(t, kubeconfig)
	repo := newGitRepo(t)
	first := repo.commit(fleetRepo(t, repo.url))

	secret, err := SourceSecret(SourceCredentials{Username: gitUser, Password: gitPassword})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.ApplySync(ctx, secret, readFile(t, repo.dir, "mgmt/flux-system/"+SyncFile), nil); err != nil {
		t.Fatal(err)
	}
	mustSync(ctx, t, system, first)
	if got := configMap(ctx, t, client, "demo", "demo"); got["size"] != "1" {
		t.Errorf("synced, but the release's ConfigMap has %v", got)
	}
	if err := system.ApplySync(ctx, secret, readFile(t, repo.dir, "mgmt/flux-system/"+SyncFile), nil); err != nil {
		t.Errorf("apply again: %v", err)
	}

	t.Run("a new commit", func(t *testing.T) {
		commit := repo.commit(map[string]string{"clusters/demo.yaml": release("demo", 2)})
		mustSync(ctx, t, system, commit)
		if got := configMap(ctx, t, client, "demo", "demo"); got["size"] != "2" {
			t.Errorf("synced, but the release's ConfigMap has %v", got)
		}
	})
	t.Run("a change of the chart alone", func(t *testing.T) {
		commit := repo.commit(map[string]string{"chart/templates/more.yaml": configMapTemplate("more")})
		mustSync(ctx, t, system, commit)
		configMap(ctx, t, client, "demo", "more")
	})
	t.Run("a commit that is superseded before Flux has seen it", func(t *testing.T) {
		first := repo.commit(map[string]string{"clusters/demo.yaml": release("demo", 4)})
		second := repo.commit(map[string]string{"clusters/demo.yaml": release("demo", 5)})
		short, cancel := context.WithTimeout(ctx, 90*time.Second)
		defer cancel()
		includes := func(_ context.Context, newer string) (bool, error) { return newer == second, nil }
		if err := system.WaitSynced(short, WaitOptions{Commit: first, Includes: includes}); err != nil {
			t.Fatal(err)
		}
		if got := configMap(ctx, t, client, "demo", "demo"); got["size"] != "5" {
			t.Errorf("synced, but the release's ConfigMap has %v", got)
		}
	})
	t.Run("asked to look now", func(t *testing.T) { lookNow(ctx, t, client, system, repo) })
	t.Run("a commit that cannot be applied, then its fix", func(t *testing.T) { badCommit(ctx, t, system, repo) })
	t.Run("suspend and resume", func(t *testing.T) { suspendAndResume(ctx, t, client, system, repo) })
	t.Run("a cluster that is gone", func(t *testing.T) { forgotten(ctx, t, client, system) })
	t.Run("status", func(t *testing.T) { statusOfAll(ctx, t, system, repo) })
}

// lookNow: each source of the fleet repo is asked, and those of other repositories are not.
func lookNow(ctx context.Context, t *testing.T, client *kube.Client, system *System, repo *gitRepo) {
	for name, url := range map[string]string{"fleet-main": repo.url, "another": "https://git.example.com/another.git"} {
		if err := client.Create(ctx, suspendedSource(name, url)); err != nil {
			t.Fatal(err)
		}
	}
	if err := system.ReconcileSources(ctx); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"fleet-main": true, "another": false} {
		obj := suspendedSource(name, "")
		if err := client.Get(ctx, kube.RefOf(obj).Key, obj); err != nil {
			t.Fatal(err)
		}
		if asked := obj.GetAnnotations()[fluxmeta.ReconcileRequestAnnotation] != ""; asked != want {
			t.Errorf("%s: asked to look is %t, want %t", name, asked, want)
		}
		if err := client.WithWatch.Delete(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
}

func suspendedSource(name, url string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
		"metadata": map[string]any{"name": name, "namespace": Namespace},
		"spec":     map[string]any{"interval": "1h", "url": url, "suspend": true},
	}}
}

func mustSync(ctx context.Context, t *testing.T, system *System, commit string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	started := time.Now()
	if err := system.WaitSynced(ctx, WaitOptions{Commit: commit, Detail: func(text string) {
		t.Logf("%5.1fs %s", time.Since(started).Seconds(), text)
	}}); err != nil {
		t.Fatal(err)
	}
	if synced, err := system.Synced(ctx, commit); err != nil || !synced {
		t.Errorf("synced, but Synced says %v, %v", synced, err)
	}
}

// badCommit: the wait goes on over failures, tells of them, names them when it gives up, and ends with the fix.
func badCommit(ctx context.Context, t *testing.T, system *System, repo *gitRepo) {
	bad := repo.commit(map[string]string{
		"clusters/demo.yaml":   strings.ReplaceAll(release("demo", 3), "size: 3", "size: {a: 1}"),
		"mgmt/also-wrong.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: default}\n",
	})
	short, cancel := context.WithTimeout(ctx, 12*time.Second)
	defer cancel()
	err := system.WaitSynced(short, WaitOptions{Commit: bad})
	var unready kube.NotReadyError
	if !errors.As(err, &unready) || !errors.Is(err, context.DeadlineExceeded) || diag.Code(err) != diag.ExitNotReady {
		t.Fatalf("got %v, want a NotReadyError at the deadline", err)
	}
	if len(unready) != 1 || unready[0].Ref.String() != "Kustomization flux-system/flux-system" ||
		!strings.Contains(unready[0].Reason, "Not_A_Name") {
		t.Errorf("wrong object or reason: %v", unready)
	}
	half := repo.commit(map[string]string{"mgmt/also-wrong.yaml": ""})
	short, cancel = context.WithTimeout(ctx, 12*time.Second)
	defer cancel()
	err = system.WaitSynced(short, WaitOptions{Commit: half})
	if !errors.As(err, &unready) || unready[0].Ref.String() != "HelmRelease demo/demo" {
		t.Fatalf("got %v, want the release", err)
	}
	mustSync(ctx, t, system, repo.commit(map[string]string{"clusters/demo.yaml": release("demo", 3)}))
}

// suspendAndResume: what the user suspended stays so.
func suspendAndResume(ctx context.Context, t *testing.T, client *kube.Client, system *System, repo *gitRepo) {
	mustSync(ctx, t, system, repo.commit(map[string]string{"clusters/other.yaml": release("other", 1)}))
	other := kube.Ref{GroupVersionKind: helmReleaseKind, Key: kube.Key{Namespace: "other", Name: "other"}}
	if err := system.patch(ctx, other, map[string]any{"spec": map[string]any{"suspend": true}}); err != nil {
		t.Fatal(err)
	}
	suspended, err := system.Suspend(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ref := range suspended {
		names = append(names, ref.String())
	}
	want := []string{
		"Kustomization flux-system/flux-system", "Kustomization flux-system/clusters", "HelmRelease demo/demo",
		"GitRepository flux-system/flux-system",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("suspended (-want +got):\n%s", diff)
	}
	if again, err := system.Suspend(ctx); err != nil || len(again) != 0 {
		t.Errorf("suspend again: got %v, %v, want nothing to do", again, err)
	}
	commit := repo.commit(map[string]string{"clusters/demo.yaml": release("demo", 9)})
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := system.WaitSynced(short, WaitOptions{Commit: commit}); err == nil || !strings.Contains(err.Error(), "it is suspended") ||
		!strings.Contains(diag.Hint(err), "kubectl -n flux-system patch kustomization flux-system") {
		t.Errorf("while suspended: got %v, hint %q", err, diag.Hint(err))
	}
	resumed, err := system.Resume(ctx)
	if err != nil || len(resumed) != len(suspended) {
		t.Errorf("resumed %v, %v, want all of %v", resumed, err, suspended)
	}
	mustSync(ctx, t, system, commit)
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(other.GroupVersionKind)
	if err := client.Get(ctx, other.Key, obj); err != nil {
		t.Fatal(err)
	}
	if still, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); !still {
		t.Error("the release that the user suspended was resumed")
	}
	obj.SetGroupVersionKind(kustomizationKind)
	if err := client.Get(ctx, systemKey, obj); err != nil {
		t.Fatal(err)
	}
	if _, marked := obj.GetAnnotations()[suspendedAnnotation]; marked {
		t.Error("the mark is still there after resuming")
	}
}

func statusOfAll(ctx context.Context, t *testing.T, system *System, repo *gitRepo) {
	remote := fmt.Sprintf(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: far, namespace: flux-system},
  spec: {interval: 1m, prune: false, path: ./clusters, sourceRef: {kind: GitRepository, name: flux-system}, kubeConfig: {secretRef: {name: %s}}}}`, "far-kubeconfig")
	bad := repo.commit(map[string]string{"mgmt/far.yaml": remote})
	short, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := system.WaitSynced(short, WaitOptions{Commit: bad}); err == nil ||
		!strings.Contains(err.Error(), "Kustomization flux-system/far") {
		t.Errorf("a cluster that is not there: got %v", err)
	}
	report, err := system.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Installed || report.Healthy() || len(report.Sources) != 1 || len(report.HelmReleases) != 2 {
		t.Errorf("report: %+v", report)
	}
	for _, k := range report.Kustomizations {
		if k.Ready != (k.Name != "far") || k.Remote != (k.Name == "far") || !k.Ready && k.Reason == "" {
			t.Errorf("wrong state of %+v", k)
		}
	}
	far, err := system.Remote(ctx)
	if err != nil || len(far) != 1 || far[0].Secret.Name != "far-kubeconfig" || far[0].Name != "far" {
		t.Errorf("remote: got %+v, %v", far, err)
	}
}

// fleetRepo is the content of a fleet repo whose only cluster is a release of a chart with one ConfigMap.
func fleetRepo(t *testing.T, url string) map[string]string {
	t.Helper()
	sync, err := GenerateSync(SyncOptions{URL: url, Branch: "main", Path: "mgmt", Interval: time.Hour, SecretName: Name})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"mgmt/flux-system/" + SyncFile:          string(sync),
		"mgmt/flux-system/" + KustomizationFile: "resources: [" + SyncFile + "]\n",
		"mgmt/clusters.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: clusters, namespace: flux-system}
spec: {interval: 10m, retryInterval: 5s, prune: true, path: ./clusters, sourceRef: {kind: GitRepository, name: flux-system}}
`,
		"clusters/demo.yaml":           release("demo", 1),
		"chart/Chart.yaml":             "apiVersion: v2\nname: chart\nversion: 0.1.0\n",
		"chart/values.schema.json":     `{"properties": {"size": {"type": "integer"}}}`,
		"chart/templates/cluster.yaml": configMapTemplate("{{ .Release.Name }}"),
	}
}

func configMapTemplate(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"" + name + "\"\ndata:\n  size: \"{{ .Values.size }}\"\n"
}

func release(name string, size int) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  interval: 10m
  chart: {spec: {chart: ./chart, reconcileStrategy: Revision, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
  install: {disableWait: true, strategy: {name: RetryOnFailure, retryInterval: 2s}}
  upgrade: {disableWait: true, strategy: {name: RetryOnFailure, retryInterval: 2s}}
  values:
    size: %[2]d
`, name, size)
}

func configMap(ctx context.Context, t *testing.T, client *kube.Client, namespace, name string) map[string]string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := client.Get(ctx, kube.Key{Namespace: namespace, Name: name}, &cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
