package lifecycle

import (
	"cmp"
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// withSupport gathers a support bundle after a failed bootstrap. It returns err, also if the bundle fails. It gathers nothing after a
// mistake in the call.
func (b *bootstrap) withSupport(ctx context.Context, err error) error {
	if err == nil || diag.Code(err) == diag.ExitUsage {
		return err
	}
	target := &management.Target{Name: b.session.Mgmt.Name, Cluster: b.session.Cluster}
	if loadErr := target.Reload(); loadErr != nil {
		return err
	}
	file := cmp.Or(b.opts.SupportFile, b.session.Cluster.Path(management.SupportFile))
	b.result.SupportBundle = management.SupportOfFailure(ctx, b.session.Deps.Report, target, file, err)
	return err
}
