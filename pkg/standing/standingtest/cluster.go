package standingtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Namespaces of the cluster, by which to see whether anything was installed.
func (c *Cluster) Namespaces(t *testing.T) []string {
	t.Helper()
	list := &corev1.NamespaceList{}
	if err := c.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// Apply applies manifests, whoever owns their fields.
func (c *Cluster) Apply(ctx context.Context, t *testing.T, manifest string) {
	t.Helper()
	opts := kube.ApplyOptions{FieldManager: "test", ForceConflicts: true}
	if _, err := kubetest.ApplyYAML(ctx, c.Client, []byte(manifest), opts); err != nil {
		t.Fatal(err)
	}
}

// Unclaim forgets whose the cluster is, in the cluster and on this machine.
func (c *Cluster) Unclaim(ctx context.Context, t *testing.T) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ownership.ClaimKey.Namespace, Name: ownership.ClaimKey.Name}}
	if err := c.Client.WithWatch.Delete(ctx, object); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.Deps.Store.Cluster("mgmt").Dir); err != nil {
		t.Fatal(err)
	}
}

// Read is the content of a file of the fleet repo.
func (c *Cluster) Read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(c.Dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Beside is another fleet repo, with a Git server of its own and on another machine, for the same cluster.
func (c *Cluster) Beside(t *testing.T) *Cluster {
	t.Helper()
	other := &Cluster{
		Client: c.Client, Kubeconfig: c.Kubeconfig, Git: gittest.NewHTTPS(t, gittest.Options{}), Dir: t.TempDir(), Deps: c.Deps,
	}
	other.Deps.Store = state.Store{Dir: t.TempDir()}
	return other
}
