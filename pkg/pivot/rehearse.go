package pivot

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// rehearsal is about a target that is to take over.
func (p *Move) rehearsal(name string) following.Rehearsal {
	return following.Rehearsal{Name: name, Warn: p.session.Deps.Report.Warn}
}

// rehearse tries what the Flux of the target would do with what the remote has, before anything is there: each object where it is now, and
// what is only to come where it comes to. The pivot itself tries it once more with what has arrived.
func (p *Move) rehearse(ctx context.Context, target *kube.Client, name string, plan *handover.Plan) error {
	s, r := p.session, p.rehearsal(name)
	read, err := r.CheckOut(ctx, s.Opts.Dir, s.Fleet.Spec.Git.Branch, s.PushAuth())
	if err != nil {
		return err
	}
	defer read.Remove()
	r.Ahead = &flux.Ahead{Source: p.source, Travels: plan.Travels()}
	return following.Rehearse(ctx, s, target, read.View(), r)
}
