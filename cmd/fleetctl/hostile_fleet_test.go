package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// bigFleet makes a fleet with two management clusters, a standby, a feature, a channel, an age key and a snapshot. It returns a folder with
// the folders laptop, which is the fleet repo, state and snapshots.
func bigFleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	repo := filepath.Join(dir, "laptop")
	if err := os.CopyFS(repo, os.DirFS(filepath.Join("..", "..", "examples", "laptop"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(repo, "fleet.yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	declared := strings.Replace(string(raw), "  environments:\n  - name: dev\n", `  git:
    url: https://127.0.0.1:1/fleet.git
  channels:
  - name: main
    branch: main
  - name: release
    tag: v*
  environments:
  - name: dev
  - name: later
    channel: release
`, 1) + `  - name: second
    cloud: second
    host:
      type: kind
    kubernetesVersion: v1.36.3
    providers:
    - name: docker
  standbys:
  - name: spare
    of: laptop
    host:
      type: kind
`
	if err := os.WriteFile(file, []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"init --scaffold --management laptop", "init --scaffold --management second", "feature add hello",
		"feature enable hello --on-management",
	} {
		var out bytes.Buffer
		args := append(strings.Fields(line), "--repo", repo, "--state-dir", filepath.Join(dir, "state"), "--cache-dir",
			filepath.Join(dir, "cache"), "--config", os.DevNull)
		if cmd.Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, args) != 0 {
			t.Fatalf("%s: %s", line, out.String())
		}
	}
	id, err := fleetrepo.ReadIdentity(repo)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "state", "keys", "fleets", id+".agekey")
	if raw, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeys(raw)
	if err != nil {
		t.Fatal(err)
	}
	place, err := snapshot.NewFolder(filepath.Join(dir, "snapshots"), "laptop")
	if err != nil {
		t.Fatal(err)
	}
	taken := time.Now()
	err = snapshot.Put(t.Context(), place, &snapshot.Snapshot{
		ID: snapshot.NewID(taken), Taken: taken, By: "somebody", Fleet: id, FleetName: "laptop", ManagementCluster: "laptop", UID: "u1",
	}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostileFleet writes the fleet repo in the folder laptop of from, and this machine's records of its management clusters. The API server of
// all of them is s.
func hostileFleet(s *hostileServer, from, dir string, clusters ...string) error {
	repo := filepath.Join(dir, "fleet")
	if err := os.CopyFS(repo, os.DirFS(filepath.Join(from, "laptop"))); err != nil {
		return err
	}
	for _, beside := range []string{"state", "snapshots"} {
		if err := os.Mkdir(filepath.Join(dir, beside), 0o700); err != nil {
			return err
		}
		err := os.CopyFS(filepath.Join(dir, beside), os.DirFS(filepath.Join(from, beside)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a small fleet has neither
			return err
		}
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	raw, err := os.ReadFile(filepath.Join(repo, "fleet.yaml"))
	if err != nil {
		return err
	}
	declared := strings.ReplaceAll(string(raw), "type: kind",
		"type: existing\n      existing:\n        kubeconfig: "+kubeconfig+"\n        context: there")
	if !strings.Contains(declared, "\n  git:") {
		declared = strings.Replace(declared, "  environments:", "  git:\n    url: https://127.0.0.1:1/fleet.git\n  environments:", 1)
	}
	files := map[string][]byte{
		filepath.Join(repo, "fleet.yaml"): []byte(declared),
		filepath.Join(dir, "config.yaml"): nil,
	}
	kubeconfigs := []string{kubeconfig}
	for _, name := range clusters {
		record, err := json.Marshal(map[string]string{
			"formatVersion": "1", "name": name, "fleet": "laptop", "repo": repo, "gitURL": "https://127.0.0.1:1/fleet.git",
			"hostType": "existing", "context": "there", "kubeconfigSource": kubeconfig,
		})
		if err != nil {
			return err
		}
		known := filepath.Join(dir, "state", "clusters", name)
		if err := os.MkdirAll(known, 0o700); err != nil {
			return err
		}
		files[filepath.Join(known, "cluster.json")] = record
		kubeconfigs = append(kubeconfigs, filepath.Join(known, "kubeconfig"), filepath.Join(known, "workload-kubeconfig"))
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	for _, name := range kubeconfigs {
		if err := clientcmd.WriteToFile(*s.kubeconfig(), name); err != nil {
			return err
		}
	}
	return nil
}

// addProvider gives the management cluster of the small fleet in dir a provider.
func addProvider(dir, provider string) error {
	file, err := os.OpenFile(filepath.Join(dir, "fleet", "fleet.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("    - name: " + provider + "\n")
	return errors.Join(err, file.Close())
}
