package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
)

// Whatever a disk has made of the file: each port is one of ours and has one owner, and a port that is asked for is there again the next
// time.
func FuzzPorts(f *testing.F) {
	f.Add([]byte(`{"capi-system/capi-controller-manager:9443":25001,"a/b:8080":31999}`))
	f.Add([]byte(`{"a/b:1":25001,"c/d:1":25001}`))
	f.Add([]byte(`{"a/b:1":0,"c/d:1":-1,"e/f:1":65536}`))
	f.Add([]byte(`{"a/b:1":25001,"a/b:2":"x"}`))
	f.Add([]byte(`null`))
	f.Add([]byte{})
	file := filepath.Join(f.TempDir(), "ports.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openPorts(file, privatenet.Machine{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.get("a/b", 1)
		if err != nil {
			t.Fatal(err)
		}
		owners := map[int32]string{}
		for key, port := range p.byKey {
			if owners[port] != "" || port < firstPort || port > lastPort || !p.taken[port] {
				t.Errorf("port %d of %s is one of %q too, or none of ours", port, key, owners[port])
			}
			owners[port] = key
		}
		again, err := openPorts(file, privatenet.Machine{})
		if err != nil {
			t.Fatal(err)
		}
		if next, err := again.get("a/b", 1); err != nil || next != got {
			t.Errorf("the port was %d, and is %d, %v", got, next, err)
		}
	})
}
