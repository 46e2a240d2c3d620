//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestTakeOverOfARunningFlux: a management cluster that has a workload cluster moves to a remote with another history, which does not have
// that one. Flux's real controllers, with pruning on again, delete nothing of it; and they read both remotes with tokens that only read.
func TestTakeOverOfARunningFlux(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-takeover")
	one, two := gittest.NewHTTPS(t, gittest.Options{}), gittest.NewHTTPS(t, gittest.Options{})
	args := []string{"init", "--bundle", os.Getenv(envBundle), "-o", "json"}
	f.servedBy(one, "docker", "")
	made := decode[initResult](t, f.ok(args...).stdout)
	mgmt := f.client(made.Kubeconfig)
	f.holdsToken(mgmt, one.ReadToken)
	identity := f.reads("fleet.id")
	f.ok("cluster", "add", "demo", "--flavour", "in-memory", "--environment", "dev", "--set", "kubernetesVersion="+kubernetesVersion, "--push")
	f.released(mgmt, kube.Key{Namespace: "demo", Name: "demo"})

	// The same folder, with nothing in it but what says which fleet it is, and where that is now.
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(f.dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	f.servedBy(two, "docker", "")
	f.writes("fleet.id", identity)
	f.fails(1, []string{"follows something else", one.URL, "--take-over-flux"}, args...)
	if url := f.follows(mgmt); url != one.URL {
		t.Fatalf("a refused init has pointed Flux at %s", url)
	}
	if out := f.ok("init", "--bundle", os.Getenv(envBundle), "--dry-run", "-o",
		"json").stdout; !strings.Contains(out, "HelmRelease demo/demo") || !strings.Contains(out, one.URL) {
		t.Errorf("the dry run says\n%s", out)
	}

	took := f.ok(append(args, "--take-over-flux")...)
	if !strings.Contains(took.stdout, "HelmRelease demo/demo") {
		t.Errorf("it does not say what is kept:\n%s", took.stdout)
	}
	f.holdsToken(mgmt, two.ReadToken)
	if url := f.follows(mgmt); url != two.URL {
		t.Errorf("Flux follows %s", url)
	}

	// Two more revisions, each applied by every Kustomization that there is, and each with pruning on.
	for i := range 2 {
		head := two.Seed(
			t,
			"main",
			map[string]string{
				fmt.Sprintf("providers/docker/v1/mgmt/note-%d.yaml", i): fmt.Sprintf(
					"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note-%d, namespace: default}\n",
					i,
				),
			},
		)
		for _, name := range []string{"flux-system", "clusters-dev"} {
			f.applied(mgmt, name, head)
		}
	}
	release := present(t, mgmt, kube.Key{Namespace: "demo", Name: "demo"}, object("helm.toolkit.fluxcd.io/v2", "HelmRelease"))
	cluster := present(t, mgmt, kube.Key{Namespace: "demo", Name: "demo"}, object("cluster.x-k8s.io/v1beta2", "Cluster"))
	namespace := present(t, mgmt, kube.Key{Name: "demo"}, object("v1", "Namespace"))
	for _, o := range []*unstructured.Unstructured{release, cluster, namespace} {
		if o.GetDeletionTimestamp() != nil {
			t.Errorf("%s %s is being deleted", o.GetKind(), o.GetName())
		}
	}
	f.available("demo", 5*time.Minute)
	f.ok("teardown", "--delete-clusters", "--yes")
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	return o
}

func (f *fleet) writes(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) reads(name string) string {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(content)
}

// holdsToken fails unless the management cluster's Flux reads with that token.
func (f *fleet) holdsToken(mgmt *kube.Client, token string) {
	f.t.Helper()
	there := present(f.t, mgmt, kube.Key{Namespace: "flux-system", Name: "flux-system"}, &corev1.Secret{})
	if string(there.Data["password"]) != token {
		f.t.Error("Flux does not hold the token that was given for it")
	}
}

// follows is the URL that the management cluster's Flux reads.
func (f *fleet) follows(mgmt *kube.Client) string {
	f.t.Helper()
	source := present(f.t, mgmt, kube.Key{Namespace: "flux-system", Name: "flux-system"},
		object("source.toolkit.fluxcd.io/v1", "GitRepository"))
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	return url
}

// released waits until Flux has made all objects of a HelmRelease: what takes it over suspends it, half made or not.
func (f *fleet) released(mgmt *kube.Client, key kube.Key) {
	f.t.Helper()
	eventually(f.t, "HelmRelease "+key.String()+" is released", 3*time.Minute, func() string {
		release := object("helm.toolkit.fluxcd.io/v2", "HelmRelease")
		if err := mgmt.Get(f.t.Context(), key, release); err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(release.Object, "status", "conditions")
		for _, each := range conditions {
			if condition, ok := each.(map[string]any); ok && condition["type"] == "Released" && condition["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprint(conditions)
	})
}

// applied waits until a Kustomization that prunes has applied a commit.
func (f *fleet) applied(mgmt *kube.Client, name, commit string) {
	f.t.Helper()
	eventually(f.t, "Kustomization "+name+" applies "+commit[:8], 3*time.Minute, func() string {
		k := object("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
		if err := mgmt.Get(f.t.Context(), kube.Key{Namespace: "flux-system", Name: name}, k); err != nil {
			return err.Error()
		}
		prune, _, _ := unstructured.NestedBool(k.Object, "spec", "prune")
		revision, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
		if prune && strings.HasSuffix(revision, commit) {
			return ""
		}
		return fmt.Sprintf("prune %t, applied %s", prune, revision)
	})
}
