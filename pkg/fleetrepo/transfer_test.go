package fleetrepo

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// treeOf returns every file of a repo with its content.
func treeOf(t testing.TB, r *Repo) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(r.Dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path.Join(r.Dir, name))
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// below returns the files of a tree in a folder, by their names in the folder.
func below(tree map[string]string, dir string) map[string]string {
	files := map[string]string{}
	for name, content := range tree {
		if rest, is := strings.CutPrefix(name, dir+"/"); is {
			files[rest] = content
		}
	}
	return files
}

func TestTransfer(t *testing.T) {
	r := open(t)
	c := must(r.find("demo"))
	from, to := c.mgmt.Layout(), "second"
	provider := c.mgmt.Providers[0]
	provider.Variables = nil
	e, err := r.AddManagementCluster(v1alpha1.ManagementCluster{
		Name: to, Host: v1alpha1.Host{Type: v1alpha1.HostKind}, Cloud: from.Cloud, Generation: "v9", Providers: []v1alpha1.Provider{provider},
	})
	_, r = done(t, r, e, err)
	write(t, r.Dir, path.Join(path.Dir(c.File), "namespaced", "extra.yaml"),
		[]byte("# ./"+from.Clusters()+"/x, "+from.Clusters()+"-not, a/"+from.Clusters()+"\n"))
	write(t, r.Dir, path.Join(from.Environment(c.Environment), "common", "apps", "mine.yaml"),
		[]byte("path: ./"+from.Environment(c.Environment)+"/common\n"))
	before := treeOf(t, r)

	e, err = r.Transfer(TransferOptions{Cluster: "demo", To: to})
	if !slices.Equal(e.Environments, []string{c.Environment}) {
		t.Errorf("environments %v", e.Environments)
	}
	_, r = done(t, r, e, err)
	m, err := r.managementCluster(to)
	if err != nil {
		t.Fatal(err)
	}
	at := m.Layout()
	moved := must(r.find("demo"))
	if moved.mgmt != m || moved.File != path.Join(at.Cluster(c.Environment, c.Name), "cluster.yaml") {
		t.Errorf("it is at %s of %s", moved.File, moved.mgmt.Name)
	}
	after := treeOf(t, r)
	if left := below(after, from.Cluster(c.Environment, c.Name)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	there := below(after, at.Cluster(c.Environment, c.Name))
	if there["cluster.yaml"] != below(before, path.Dir(c.File))["cluster.yaml"] {
		t.Errorf("cluster.yaml is another one:\n%s", there["cluster.yaml"])
	}
	if want := "# ./" + at.Clusters() + "/x, " + from.Clusters() + "-not, a/" + from.Clusters() +
		"\n"; there["namespaced/extra.yaml"] != want {
		t.Errorf("paths in it are %q, want %q", there["namespaced/extra.yaml"], want)
	}
	if want := "path: ./" + at.Environment(c.Environment) +
		"/common\n"; after[path.Join(at.Environment(c.Environment), "common", "apps", "mine.yaml")] != want {
		t.Errorf("what the environment has did not come along: %v", below(after, at.Environment(c.Environment)))
	}
	again, err := r.Transfer(TransferOptions{Cluster: "demo", To: to})
	if err != nil || again.AsWanted == "" || len(again.Changes.Files()) > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}

	// There and back, every byte is as it was, where somebody else's clusters keep the environment as it is.
	e, err = r.Transfer(TransferOptions{Cluster: "demo", To: c.mgmt.Name})
	_, r = done(t, r, e, err)
	back := treeOf(t, r)
	for name := range back {
		if strings.HasPrefix(name, at.Owned()+"/") {
			delete(back, name) // the environment's own stays for the next one
		}
	}
	for name := range before {
		if strings.HasPrefix(name, at.Owned()+"/") {
			delete(before, name)
		}
	}
	if diff := cmp.Diff(before, back); diff != "" {
		t.Errorf("there and back:\n%s", diff)
	}
}

// If the environment has other content at the new management cluster, a transfer fails unless the user accepts the differences.
func TestTransferDiffers(t *testing.T) {
	r := open(t)
	c := must(r.find("demo"))
	provider := c.mgmt.Providers[0]
	provider.Variables = nil
	e, err := r.AddManagementCluster(v1alpha1.ManagementCluster{
		Name: "second", Host: v1alpha1.Host{Type: v1alpha1.HostKind}, Cloud: c.mgmt.Layout().Cloud, Generation: "v9",
		Providers: []v1alpha1.Provider{provider},
	})
	_, r = done(t, r, e, err)
	m, err := r.managementCluster("second")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(c.src), c.Name, "neighbour")
	write(t, r.Dir, path.Join(m.Layout().Cluster(c.Environment, "neighbour"), "cluster.yaml"), []byte(other))
	write(t, r.Dir, path.Join(c.mgmt.Layout().Environment(c.Environment), "common", "apps", "monitoring.yaml"),
		[]byte("kind: Kustomization\n"))
	_, err = r.Transfer(TransferOptions{Cluster: "demo", To: "second"})
	if err == nil || !strings.Contains(err.Error(), "common/apps/monitoring.yaml") ||
		!strings.Contains(diag.Hint(err), "--accept-differences") {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}
	if _, err := r.Transfer(TransferOptions{Cluster: "demo", To: "second", AcceptDifferences: true}); err != nil {
		t.Error(err)
	}
	write(t, r.Dir, path.Join(m.Layout().Cluster(c.Environment, "demo"), "cluster.yaml"), c.src)
	if _, err := r.Transfer(TransferOptions{Cluster: "demo", To: "second", AcceptDifferences: true}); err == nil ||
		!strings.Contains(err.Error(), "there is a cluster demo already") {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := r.Transfer(TransferOptions{Cluster: "demo", To: "nobody"}); err == nil {
		t.Error("an unknown management cluster is taken")
	}
}
