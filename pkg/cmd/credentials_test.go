package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A management cluster whose record on this machine is of no use does not hide the others.
func TestCredentialsOfAnUnknownClusterBesideOthers(t *testing.T) {
	isolate(t)
	dir, remembered := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	fleet := "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\nspec:\n" +
		"  git: {url: https://git.example.com/acme/fleet.git}\n" +
		"  environments: [{name: dev}]\n  managementClusters:\n  - {name: lost, cloud: docker, providers: [{name: docker}]}\n" +
		"  - {name: other, cloud: docker, generation: v2, providers: [{name: docker}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	record := state.Store{Dir: remembered}.Cluster("lost").Path("cluster.json")
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), ui.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		[]string{"credentials", "--state-dir", remembered, "--cache-dir", t.TempDir()})
	out := stdout.String()
	lost, other := strings.Index(out, "cluster lost could not be asked: "), strings.Index(out, "cluster other could not be asked: ")
	if code != 3 || lost < 0 || other < lost {
		t.Errorf("exit code %d\n%s%s", code, out, stderr.String())
	}
}
