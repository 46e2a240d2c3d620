package lifecycle

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// checkProviderPort looks whether the docker provider can have its port on this machine, and names who has it.
func (s *session) checkProviderPort(ctx context.Context) preflight.Result {
	return management.CheckPort(ctx, s.deps.Store, s.mgmt.Name, s.host, management.InMemoryPort)
}

// checkPivotSource refuses, before anything is made, a fleet repo that the cluster which is to take over could never read: what an
// embedded host serves is on this machine's loopback.
func (b *bootstrap) checkPivotSource() error {
	if b.opts.PivotTo == "" || !b.session.traits().Processes || b.session.fleet.Spec.Git.Scheme() != v1alpha1.GitLocal {
		return nil
	}
	return diag.Usage("give the fleet repo a remote with --git-url, or bootstrap with --host kind",
		"%s cannot take over: with the embedded host, a fleet repo without a remote is served on this machine's loopback only", b.opts.PivotTo)
}
