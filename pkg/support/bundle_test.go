package support

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/status"
)

// A cluster that does not answer has a bundle as well: it says so, and has what this machine knows.
func TestBundleWithoutACluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	r, err := Write(t.Context(), file, Sources{
		Name: "mgmt", Status: status.Sources{Cluster: status.Cluster{Name: "mgmt", State: "stopped"}, Unreachable: errors.New("it is stopped, and was asked with " + canary)},
		Private: [][]byte{[]byte(`{"url": "http://127.0.0.1", "password": "` + canary + `"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unread) != 2 || !strings.Contains(r.Unread[0], "it is stopped") || strings.Contains(r.Unread[0], canary) || r.Unread[1] != unseenSecrets {
		t.Errorf("unread: %q", r.Unread)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != r.Bytes {
		t.Errorf("%v, %v", info, err)
	}
	// Where it cannot be written there is nothing, not a part of it.
	bad := filepath.Join(t.TempDir(), "no", "such", "folder.tar.gz")
	if _, err := Write(t.Context(), bad, Sources{Name: "mgmt"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
