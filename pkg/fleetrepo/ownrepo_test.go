package fleetrepo

import (
	"bytes"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// openOwned returns a fleet whose management cluster eu has its own repository. eu has the cluster shop in prod, and root still has early.
func openOwned(t testing.TB) *Repo {
	t.Helper()
	r := openMasters(t)
	write(t, r.Dir, "eu-ca.pem", []byte("certificates of eu\n"))
	write(t, r.Dir, "fleet.yaml", []byte(strings.Replace(mastersFleet, "    cloud: eu\n",
		"    cloud: eu\n    repository:\n      fleet: acme-eu\n      git: {url: \"https://git.example.com/eu.git\", caFile: eu-ca.pem}\n      "+
			"environments: [prod]\n", 1)))
	write(t, r.Dir, "features/monitoring/prod/kustomization.yaml", []byte("resources: [../base]\n"))
	write(t, r.Dir, "features/monitoring/base/password.sops.yaml", []byte("sealed for root\n"))
	write(t, r.Dir, "features/other/base/kustomization.yaml", []byte("resources: []\n"))
	write(t, r.Dir, "providers/eu/v1/clusters/prod/common/apps/monitoring.yaml", []byte("path: ./features/monitoring/prod\n"))
	return reopen(t, r.Dir)
}

// resealed marks the content that it gets.
func resealed(_ string, content []byte) ([]byte, error) {
	return bytes.ReplaceAll(content, []byte("sealed for root"), []byte("sealed for eu")), nil
}

// newRepoOf writes the files of a repository.
func newRepoOf(t testing.TB, files []manifest.File) *Repo {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		write(t, dir, f.Path, f.Content)
	}
	return reopen(t, dir)
}

// The new repository of a management cluster gets the files of this management cluster, and no others.
func TestOwnRepo(t *testing.T) {
	r := openOwned(t)
	files, err := r.OwnRepo("eu", resealed)
	if err != nil {
		t.Fatal(err)
	}
	own := newRepoOf(t, files)
	tree := treeOf(t, own)
	for name, want := range map[string]string{
		"eu-ca.pem": "certificates of eu\n", "features/monitoring/prod/kustomization.yaml": "resources: [../base]\n",
		"features/monitoring/base/password.sops.yaml":               "sealed for eu\n",
		"providers/eu/v1/clusters/prod/common/apps/monitoring.yaml": "path: ./features/monitoring/prod\n",
	} {
		if tree[name] != want {
			t.Errorf("%s is %q, want %q", name, tree[name], want)
		}
	}
	for name := range tree {
		if strings.HasPrefix(name, "providers/") && !strings.HasPrefix(name, "providers/eu/") || strings.HasPrefix(name, "features/other") {
			t.Errorf("it has %s, which is not eu's", name)
		}
	}
	f := own.Fleet
	if f.Metadata.Name != "acme-eu" || f.Spec.Git.URL != "https://git.example.com/eu.git" || len(f.Spec.ManagementClusters) != 1 {
		t.Errorf("its fleet is %+v", f)
	}
	if m := f.Spec.ManagementClusters[0]; m.Name != "eu" || m.Parent != "root" || m.Repository != nil || len(m.Providers) != 1 {
		t.Errorf("its management cluster is %+v", m)
	}
	if diff := cmp.Diff([]string{"regions", "prod"}, own.EnvironmentNames()); diff != "" {
		t.Error(diff)
	}
	if _, err := own.Cluster("shop"); err != nil {
		t.Error(err)
	}
	if _, ok := tree["charts/in-memory/Chart.yaml"]; !ok {
		t.Error("the chart of shop did not come along")
	}

	const later = "providers/eu/v1/clusters/prod/shop/later.yaml"
	write(t, r.Dir, later, []byte("added: after the first commit\n"))
	r = reopen(t, r.Dir)
	if e, err := r.MoveToOwnRepo("eu", own); err == nil || !strings.Contains(err.Error(), later) ||
		strings.Contains(err.Error(), "cluster.yaml") || diag.Hint(err) == "" {
		t.Errorf("a file that it does not have was removed: %+v, %v", e, err)
	}
	write(t, own.Dir, later, []byte("added: after the first commit\n"))
	e, err := r.MoveToOwnRepo("eu", own)
	_, r = done(t, r, e, err)
	if left := below(treeOf(t, r), "providers/eu"); len(left) > 0 {
		t.Errorf("left in the repository of the masters: %v", left)
	}
	if _, err := r.Add(AddOptions{
		Name: "more", Environment: "prod", ManagementCluster: "eu", Flavour: "in-memory",
		KubernetesVersion: "v1.36.3",
	}); err == nil ||
		!strings.Contains(err.Error(), "has a fleet repo of its own, https://git.example.com/eu.git") {
		t.Errorf("a cluster was added beside it: %v", err)
	}
	m, err := r.Master("", "prod")
	if err != nil || m.Name != "eu" || m.Repository == nil {
		t.Fatalf("by its environment: %+v, %v", m, err)
	}
	if diff := cmp.Diff([]ClusterName{{"regions", "eu"}, {"prod", "early"}}, m.Clusters); diff != "" {
		t.Error(diff)
	}
	if _, err := r.OwnMaster(m); err == nil {
		t.Error("the repository of the masters was taken for its own")
	}
}

// Files that cannot move to the new repository are an error.
func TestOwnRepoRefused(t *testing.T) {
	r := openOwned(t)
	fleet := string(must(r.read("fleet.yaml")))
	for name, tc := range map[string]struct {
		set  func()
		want string
	}{
		"it follows this one": {func() {
			write(t, r.Dir, "providers/eu/v1/mgmt/flux-system/gotk-sync.yaml", []byte("kind: GitRepository\n"))
		}, "follows this repository already"},
		"a file beside fleet.yaml": {func() {
			write(t, r.Dir, "fleet.yaml", []byte(strings.Replace(fleet, "    parent: root\n    cloud: eu\n", "    parent: root\n    cloud: eu\n",
				1)[:strings.LastIndex(fleet, "  - name: us")]+
				"  - name: us\n    parent: root\n    cloud: us\n    repository: {git: {url: 'https://git.example.com/us.git'}}\n    providers: "+
				"[{name: docker, variables: [{name: A_TOKEN, file: token}]}]\n"))
		}, "comes from the file token"},
		"a token of Vault beside fleet.yaml": {func() {
			write(t, r.Dir, "fleet.yaml", []byte(fleet[:strings.LastIndex(fleet, "  - name: us")]+
				"  - name: us\n    parent: root\n    cloud: us\n    repository: {git: {url: 'https://git.example.com/us.git'}}\n    vault: "+
				"{tokenFile: token}\n"))
		}, "is in the file token"},
	} {
		tc.set()
		r = reopen(t, r.Dir)
		of := "eu"
		if strings.Contains(tc.want, "token") {
			of = "us"
		}
		if _, err := r.OwnRepo(of, nil); err == nil || !strings.Contains(err.Error(), tc.want) || diag.Hint(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
	}
	if _, err := r.OwnRepo("root", nil); err == nil || !strings.Contains(err.Error(), "no repository of its own") {
		t.Errorf("root: %v", err)
	}
}

// A cluster's folder arrives in the other repository as a transfer within one repository would have moved it. This repository loses the
// folder, and gets the record of the run.
func TestTransferInto(t *testing.T) {
	r := openOwned(t)
	write(t, r.Dir, "providers/root/v1/clusters/regions/eu/identity.sops.yaml", []byte("sealed for root\n"))
	write(t, r.Dir, "providers/root/v1/clusters/regions/eu/extra.yaml",
		[]byte("path: ./providers/root/v1/clusters/regions\nalso: ./features/other/base\n"))
	files, err := r.OwnRepo("eu", resealed)
	if err != nil {
		t.Fatal(err)
	}
	into := newRepoOf(t, files)
	e, err := r.MoveToOwnRepo("eu", into)
	_, r = done(t, r, e, err)
	before := treeOf(t, r)
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), By: "ci", Version: "v1.2.3"}
	o := TransferOptions{Cluster: "eu", To: "eu", HandedOver: run}

	e, err = r.TransferInto(into, o, resealed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Check{RendersCluster{"providers/eu/v1/clusters/regions/eu/cluster.yaml"}}, e.Checks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, treeOf(t, r)); diff != "" {
		t.Errorf("it changed where it comes from:\n%s", diff)
	}
	_, into = done(t, into, e, err)
	arrived := treeOf(t, into)
	there := below(arrived, "providers/eu/v1/clusters/regions/eu")
	if there["cluster.yaml"] != before["providers/root/v1/clusters/regions/eu/cluster.yaml"] ||
		there["identity.sops.yaml"] != "sealed for eu\n" ||
		there["extra.yaml"] != "path: ./providers/eu/v1/clusters/regions\nalso: ./features/other/base\n" {
		t.Errorf("it has %v", there)
	}
	for _, name := range []string{
		"features/other/base/kustomization.yaml", "charts/docker/Chart.yaml",
		"providers/eu/v1/clusters/regions/chart-docker.yaml",
	} {
		if arrived[name] == "" || arrived[name] != before[name] && path.Base(name) != "chart-docker.yaml" {
			t.Errorf("%s is %q there", name, arrived[name])
		}
	}
	if again, err := r.TransferInto(into, o, resealed); err != nil || again.AsWanted == "" || !again.Changes.Empty() {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	m, err := r.Master("eu", "")
	if err != nil {
		t.Fatal(err)
	}
	if m, err = into.OwnMaster(m); err != nil || !m.Alone || m.Own != (ClusterName{"regions", "eu"}) {
		t.Errorf("it stands alone there: %+v, %v", m, err)
	}

	e, err = r.TransferAway(o)
	_, r = done(t, r, e, err)
	if left := below(treeOf(t, r), "providers/root/v1/clusters/regions/eu"); len(left) > 0 {
		t.Errorf("the root would make it again: %v", left)
	}
	if record := string(must(r.read("providers/root/v1/handed-over/eu.yaml"))); !strings.Contains(record, "cluster: regions/eu") {
		t.Error(record)
	}
	if m, err = r.Master("eu", ""); err != nil {
		t.Fatal(err)
	}
	if m, err = into.OwnMaster(m); err != nil || !m.Alone {
		t.Errorf("and when the root has nothing of it: %+v, %v", m, err)
	}
	if _, err := r.TransferInto(into, TransferOptions{Cluster: "us", To: "eu"}, nil); err == nil ||
		!strings.Contains(diag.Hint(err), "bootstrap --management us --stand-alone") &&
			!strings.Contains(diag.Hint(err), "environment add america") {
		t.Errorf("another management cluster's own: %v (%s)", err, diag.Hint(err))
	}
	into.Fleet.Spec.Environments = []v1alpha1.Environment{{Name: "regions"}}
	if _, err := r.TransferInto(into, TransferOptions{Cluster: "early", To: "eu"}, nil); err == nil ||
		!strings.Contains(diag.Hint(err), "environment add prod") {
		t.Errorf("an environment that it does not have: %v (%s)", err, diag.Hint(err))
	}
}
