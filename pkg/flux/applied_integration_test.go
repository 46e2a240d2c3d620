//go:build integration

package flux

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A workload cluster's own Flux, with its real controllers, reads the fleet repo at its own interval. Until it has applied a commit, the
// commit is missing inside, whatever the management cluster says.
func TestMissingInside(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	c, kubeconfig := kubetest.Start(t)
	installCRDs(ctx, t, c)
	startControllers(t, kubeconfig)
	system := NewSystem(c)
	repo := newGitRepo(t)
	word := func(word string) string {
		return repo.commit(map[string]string{
			"apps/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello, namespace: default}\ndata: {word: " + word + "}\n",
		})
	}
	first := word("hello")
	missing := func(commit string, want ...string) {
		t.Helper()
		got, err := system.MissingInside(ctx, commit)
		if err != nil || len(got) != len(want) {
			t.Fatalf("missing of %.12s: %q, %v; want %q", commit, got, err, want)
		}
		for i, m := range got {
			if !strings.Contains(m, want[i]) {
				t.Errorf("missing of %.12s: %q, want %q", commit, m, want[i])
			}
		}
	}
	missing(first, "GitRepository flux-system/flux-system: it does not exist")

	secret, err := SourceSecret(SourceCredentials{Username: gitUser, Password: gitPassword})
	if err != nil {
		t.Fatal(err)
	}
	if err := system.ApplySecret(ctx, secret); err != nil {
		t.Fatal(err)
	}
	source := `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1h, url: "` + repo.url + `", ref: {branch: main}, secretRef: {name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 1h, retryInterval: 5s, prune: true, wait: true, path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
`
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(source), kube.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	arrived := func(commit string) {
		t.Helper()
		// First the source, whose last change may come after that of the Kustomization.
		for _, kind := range []schema.GroupVersionKind{gitRepositoryKind, kustomizationKind} {
			err := c.Watch(ctx, kind, kube.Selection{}, func(kube.Objects) (bool, error) {
				left, err := system.MissingInside(ctx, commit)
				return err == nil && !slices.ContainsFunc(left, func(m string) bool { return strings.HasPrefix(m, kind.Kind) }), err
			})
			if err != nil {
				t.Fatalf("wait for the %s to have %s: %v", kind.Kind, commit, err)
			}
		}
	}
	arrived(first)
	second := word("goodbye")
	missing(second, "GitRepository flux-system/flux-system: it has fetched "+first[:12]+", not "+second[:12])
	if err := system.request(ctx, kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}); err != nil {
		t.Fatal(err)
	}
	arrived(second)

	broken := repo.commit(map[string]string{
		"apps/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NOT-A-NAME, namespace: default}\n",
	})
	if err := system.request(ctx, kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}); err != nil {
		t.Fatal(err)
	}
	err = c.Watch(ctx, kustomizationKind, kube.Selection{}, func(kube.Objects) (bool, error) {
		left, err := system.MissingInside(ctx, broken)
		return err == nil && len(left) == 1 && strings.HasPrefix(left[0], "Kustomization flux-system/apps: ") &&
			strings.Contains(left[0], "NOT-A-NAME"), err
	})
	if err != nil {
		t.Fatalf("apps that fail are not told: %v", err)
	}
}
