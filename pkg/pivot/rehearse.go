package pivot

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// rehearsal returns the options of a rehearsal at the target with that name.
func (p *Move) rehearsal(name string) following.Rehearsal {
	return following.Rehearsal{Name: name, Warn: p.session.Deps.Report.Warn}
}

// rehearse tries, at the target, what Flux would do there with the content of the Git remote. It runs before the hand-over copies any
// object, so it reads these objects at the source. The pivot rehearses once more with the copies.
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
