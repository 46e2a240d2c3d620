package kind

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// stateDir is the host's folder on this machine. The engine knows the host's state; the folder only adds to it.
type stateDir string

// record holds facts that the engine cannot tell.
type record struct {
	// Network is kind's network, if it did not exist before Create.
	Network string `json:"network,omitempty"`
	// Owner of the nodes. A user with this folder may use them, even as another user or on another machine.
	Owner string `json:"owner,omitempty"`
}

const (
	recordFile     = "kind.json"
	kubeconfigFile = "kubeconfig"
	failureFile    = "kind-create.log"
)

func (d stateDir) path(name string) string { return filepath.Join(string(d), name) }

func (d stateDir) read() (record, error) {
	var r record
	data, err := os.ReadFile(d.path(recordFile))
	if err != nil {
		return r, ignoreMissing(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, diag.Wrap("read "+d.path(recordFile), err,
			"move it away: the container engine knows all but the name of a network that fleetctl made, which then stays")
	}
	return r, nil
}

func (d stateDir) write(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return d.writeFile(recordFile, data)
}

// make makes the folder, for this user alone.
func (d stateDir) make() error { return os.MkdirAll(string(d), 0o700) }

// writeFile replaces a file atomically, with mode 0600.
func (d stateDir) writeFile(name string, data []byte) error {
	if err := d.make(); err != nil {
		return err
	}
	return atomicfile.Write(d.path(name), data, 0o600)
}

// remove removes fleetctl's files, and the folder if it is then empty.
func (d stateDir) remove() error {
	for _, name := range []string{recordFile, kubeconfigFile, kubeconfigFile + ".lock", failureFile} {
		if err := ignoreMissing(os.Remove(d.path(name))); err != nil {
			return err
		}
	}
	_ = os.Remove(string(d)) // fails if the folder has other files, which then stay
	return nil
}
