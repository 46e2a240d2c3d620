package controlplane

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// LeafLife is how long a certificate holds.
const LeafLife = leafLife

// MakeKeys makes the keys of a control plane as a start at that time would have made them.
func MakeKeys(dir string, now time.Time) error {
	_, err := pki{dir: filepath.Join(dir, pkiDir)}.ensure(now)
	return err
}

// Ready waits until all processes run and the API server is ready, for example after one of them was restarted.
func (c *ControlPlane) Ready(ctx context.Context) error {
	for _, s := range []*process.Supervisor{c.etcd, c.apiServer} {
		if err := s.AwaitReady(ctx, 0); err != nil {
			return diag.Wrap("wait for "+s.Name(), err, "see "+c.logFile(s.Name()))
		}
	}
	return nil
}

// Processes are the supervisors of the running processes.
func (c *ControlPlane) Processes() []*process.Supervisor {
	return []*process.Supervisor{c.etcd, c.apiServer, c.controllerManager}
}
