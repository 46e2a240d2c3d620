package pivot

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/state"
)

// A damaged file of the kept target is none: the source has the same, and the user can give a kubeconfig. It locks nobody out.
func TestDamagedKeptTarget(t *testing.T) {
	cluster := state.Store{Dir: t.TempDir()}.Cluster("mgmt")
	if kept, err := readKept(cluster); err != nil || kept != nil {
		t.Errorf("none: %+v, %v", kept, err)
	}
	whole := `{"name":"platform/platform","kubeconfig":"YXBpVmVyc2lvbjogdjEK"}`
	for n := range len(whole) {
		if err := cluster.Write(targetFile, []byte(whole[:n])); err != nil {
			t.Fatal(err)
		}
		if kept, err := readKept(cluster); err != nil || kept != nil {
			t.Fatalf("%d bytes of it: %+v, %v", n, kept, err)
		}
	}
	for _, content := range []string{"{}", "null", `{"name":"platform/platform"}`, `{"kubeconfig":"YXBpVmVyc2lvbjogdjEK"}`} {
		if kept := decodeKept([]byte(content)); kept != nil {
			t.Errorf("%s: %+v", content, kept)
		}
	}
	if err := cluster.Write(targetFile, []byte(whole)); err != nil {
		t.Fatal(err)
	}
	if kept, err := readKept(cluster); err != nil || kept == nil || kept.Name != "platform/platform" {
		t.Errorf("all of it: %+v, %v", kept, err)
	}
}
