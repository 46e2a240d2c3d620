//go:build integration

package flux

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// The real kustomize-controller has recorded another revision than it has applied, as kustomizationLate describes it: the test writes the
// record, because the race for it is lost only in one of some ten tries. What depends on the Kustomization waits, status names the
// Kustomization and not what waits alone, and WaitSynced ends it with what the hint says.
func TestRecordedRevision(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c, kubeconfig := kubetest.Start(t)
	installCRDs(ctx, t, c)
	startControllers(t, kubeconfig)
	system := NewSystem(c)
	repo := newGitRepo(t)
	files := fleetRepo(t, repo.url)
	delete(files, "mgmt/clusters.yaml")
	for _, name := range []string{"first", "second"} {
		files[name+"/map.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n"
		files["mgmt/"+name+".yaml"] = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: ` + name + `, namespace: flux-system}
spec: {interval: 1h, prune: true, path: ./` + name + `, sourceRef: {kind: GitRepository, name: flux-system}` +
			map[string]string{"second": ", dependsOn: [{name: first}]"}[name] + "}\n"
	}
	commit := repo.commit(files)
	secret, err := SourceSecret(SourceCredentials{Username: gitUser, Password: gitPassword})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.ApplySync(ctx, secret, readFile(t, repo.dir, "mgmt/flux-system/"+SyncFile), nil); err != nil {
		t.Fatal(err)
	}
	mustSync(ctx, t, system, commit)

	first := &unstructured.Unstructured{}
	first.SetGroupVersionKind(kustomizationKind)
	first.SetNamespace(Namespace)
	first.SetName("first")
	wrong := []byte(`{"status":{"lastAppliedRevision":"main@sha1:` + strings.Repeat("2", 40) + `"}}`)
	if err := c.Status().Patch(ctx, first, client.RawPatch("application/merge-patch+json", wrong)); err != nil {
		t.Fatal(err)
	}
	second := kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: Namespace, Name: "second"}}
	if err := system.request(ctx, second); err != nil {
		t.Fatal(err)
	}
	err = c.WaitFor(ctx, kustomizationKind, second.Key, func(obj *unstructured.Unstructured) (bool, error) {
		return obj != nil && strings.Contains(kube.Reason(kube.Conditions(obj)), "revision is not up to date"), nil
	})
	if err != nil {
		t.Fatalf("what depends on it does not wait: %v", err)
	}
	report, err := system.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range report.Kustomizations {
		command := diag.ShellCommand("kubectl", "-n", "flux-system", "annotate", "--overwrite", "kustomization", k.Name)
		if k.Ready != (k.Name == Name) || k.Name == "first" && (!strings.Contains(k.Reason, "but has recorded main@sha1:222222222222") ||
			!strings.Contains(k.Behind, command)) {
			t.Errorf("status: %+v", k)
		}
	}
	mustSync(ctx, t, system, commit)
}
