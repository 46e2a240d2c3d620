package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// supportTime bounds the time for the support bundle of a failed bootstrap.
const supportTime = 90 * time.Second

// withSupport gathers a support bundle after a failed bootstrap, before the cluster can be torn down, because the user of a pipeline has no
// other way to look at it. It returns err, also if the bundle fails. It gathers nothing after an interruption.
func (b *bootstrap) withSupport(ctx context.Context, err error) error {
	if err == nil || diag.Code(err) == diag.ExitUsage || errors.Is(context.Cause(ctx), context.Canceled) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), supportTime)
	defer cancel()
	target := &management.Target{Name: b.session.Mgmt.Name, Cluster: b.session.Cluster}
	if loadErr := target.Reload(); loadErr != nil || target.Record == nil {
		return err // nothing was made yet
	}
	file := cmp.Or(b.opts.SupportFile, b.session.Cluster.Path(management.SupportFile))
	step := b.session.Deps.Report.Start("gather the support bundle")
	result, supportErr := management.SupportBundle(ctx, target, file, err.Error(), step.Detail)
	if supportErr != nil {
		step.Fail(supportErr)
		return err
	}
	step.Done()
	b.result.SupportBundle = result.File
	b.session.Deps.Report.Warn("what there is to see of the failure is in " + result.File + ", without secrets: " +
		plain.Count(len(result.Entries), "file"))
	return err
}
