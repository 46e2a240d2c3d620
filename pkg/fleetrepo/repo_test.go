package fleetrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// open returns the repo of testdata/repo.txtar in a temporary folder.
func open(t testing.TB) *Repo {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/repo.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		write(t, dir, f.Name, f.Data)
	}
	return reopen(t, dir)
}

func reopen(t testing.TB, dir string) *Repo {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// difference is what an edit changes in the fleet repo at dir.
func difference(e *Edit, dir string) (string, error) {
	changes, err := e.Changes.Plan(dir)
	return manifest.Diff(changes), err
}

// done applies an edit, and returns its diff and the repo after it.
func done(t testing.TB, r *Repo, e *Edit, err error) (string, *Repo) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, diag.Hint(err))
	}
	diff, err := difference(e, r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Changes.Apply(r.Dir); err != nil {
		t.Fatal(err)
	}
	return diff, reopen(t, r.Dir)
}

// lines returns the changed lines of a diff.
func lines(diff string) string {
	var out []string
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") || line[0] != '+' && line[0] != '-' {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

func TestOpen(t *testing.T) {
	r := open(t)
	below, err := Open(filepath.Join(r.Dir, "providers", "aws"))
	if err != nil || below.Dir != r.Dir {
		t.Errorf("from below: %v, %v", below, err)
	}
	dir := t.TempDir()
	write(t, dir, "file", nil)
	for name, want := range map[string]string{
		"gone": "gone does not exist", "file": "file is not a folder", "file/below": "below does not exist",
	} {
		_, findErr := Find(filepath.Join(dir, name))
		if _, _, err := FindAny(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) || findErr == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no fleet.yaml in") {
		t.Errorf("no repo: %v", err)
	}
}

func TestClusters(t *testing.T) {
	r := open(t)
	write(t, r.Dir, "providers/docker/v1/clusters/dev/broken/cluster.yaml", []byte("kind: [\n"))
	write(t, r.Dir, "providers/docker/v1/clusters/dev/empty/README.md", nil)
	clusters, findings, err := r.Clusters()
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := 1, 2, 3
	five := 5
	want := []Cluster{
		{
			Name: "demo", Environment: "dev", ManagementCluster: "laptop", Flavour: "in-memory", KubernetesVersion: "v1.35.2", ControlPlane: &one,
			Pools: []Pool{{Name: "md-0", Replicas: &two, Line: 32}}, File: "providers/docker/v1/clusters/dev/demo/cluster.yaml", Line: 7,
		},
		{
			Name: "shop", Environment: "prod", ManagementCluster: "cloud", Flavour: "aws-eks", KubernetesVersion: "v1.36.1",
			Pools: []Pool{
				{Name: "general", Replicas: &three, Line: 20},
				{Name: "burst", Min: &one, Max: &five, KubernetesVersion: "v1.35.0", Line: 23},
			},
			Paused: true, File: "providers/aws/v1/clusters/prod/shop/cluster.yaml", Line: 2,
		},
	}
	if diff := cmp.Diff(want, clusters); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(findings) != 1 || findings[0].File != "providers/docker/v1/clusters/dev/broken/cluster.yaml" {
		t.Errorf("findings: %v", findings)
	}
}

func TestFind(t *testing.T) {
	r := open(t)
	write(t, r.Dir, "providers/docker/v1/clusters/stage/demo/cluster.yaml", []byte("kind: HelmRelease\n"))
	for name, want := range map[string]string{
		"dmeo":        "did you mean demo?",
		"demo":        "choose one: dev/demo, stage/demo",
		"prod/demo":   "there is: dev/demo, stage/demo",
		"stage/demo":  "look into it",
		"../dev/demo": "there are: demo, shop",
	} {
		if _, err := r.Cluster(name); !strings.Contains(diag.Hint(err), want) {
			t.Errorf("%s: %v (%s); want %s", name, err, diag.Hint(err), want)
		}
	}
	if c, err := r.Cluster("dev/demo"); err != nil || c.Name != "demo" {
		t.Errorf("dev/demo: %v, %v", c, err)
	}
}

// A folder without a cluster's file is no cluster, and the name of the folder no help to whoever has given it.
func TestFindWithoutFile(t *testing.T) {
	r := open(t)
	file := filepath.Join(r.Dir, "providers", "docker", "v1", "clusters", "dev", "demo", "cluster.yaml")
	outside := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.Rename(file, outside); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"demo", "dev/demo"} {
		if _, err := r.Cluster(name); err == nil || !strings.Contains(err.Error(), "no file providers/docker/v1/clusters/dev/demo/cluster.yaml") {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
	}
	if _, err := r.Cluster("prod/demo"); err == nil || strings.Contains(err.Error(), "folder") {
		t.Errorf("prod/demo: %v", err)
	}
	if err := os.Symlink(outside, file); err != nil {
		t.Fatal(err)
	}
	_, err := r.Cluster("demo")
	if found, ok := errors.AsType[diag.Findings](err); !ok || found[0].File != "providers/docker/v1/clusters/dev/demo/cluster.yaml" {
		t.Errorf("a link out of the repo: %v (%s)", err, diag.Hint(err))
	}
}

// Listing thousands of clusters is quick.
func TestClustersIsFast(t *testing.T) {
	r := open(t)
	src, err := r.read("providers/docker/v1/clusters/dev/demo/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const many = 2000
	for i := range many {
		name := fmt.Sprintf("edge-%04d", i)
		write(t, r.Dir, "providers/docker/v1/clusters/dev/"+name+"/cluster.yaml", []byte(strings.ReplaceAll(string(src), "demo", name)))
	}
	start := time.Now()
	clusters, findings, err := r.Clusters()
	if err != nil || len(findings) > 0 || len(clusters) != many+2 {
		t.Fatalf("%d clusters, %v, %v", len(clusters), findings, err)
	}
	if took := time.Since(start); took > 10*time.Second { // some 0.3s; the machine may be busy, or the race detector on
		t.Errorf("listing %d clusters took %s", many, took)
	}
	start = time.Now()
	if _, err := r.Cluster("edge-1999"); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("finding one took %s", took)
	}
}

// A commit may have a symbolic link as fleet.yaml. It must not lead out of a copy of the commit.
func TestCopyWithALink(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte("a: secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "fleet.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCopy(dir, t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "read fleet: ") {
		t.Errorf("what a link leads to was read: %v", err)
	}
}
