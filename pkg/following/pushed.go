package following

import (
	"context"
	"errors"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Pushed is the commit that Flux is to apply, and the credentials with which Flux reads it.
type Pushed struct {
	Session  *session.Session
	Access   *repoaccess.Access
	Repo     *gitrepo.Repo // the working tree
	Revision string
}

// View returns the content of the commit.
func (p *Pushed) View(components *flux.Components) View {
	return View{Flux: components, repo: p.Repo, revision: p.Revision}
}

// WaitOptions wait for the pushed revision, or for a later commit that contains it.
func (p *Pushed) WaitOptions(detail func(string)) flux.WaitOptions {
	return flux.WaitOptions{Commit: p.Revision, Detail: detail, Includes: func(ctx context.Context, newer string) (bool, error) {
		return p.Repo.Includes(ctx, p.Session.PushAuth(), newer, p.Revision)
	}}
}

// Attach points the Flux of a cluster that has taken over at the fleet repo.
func (p *Pushed) Attach(ctx context.Context, target *kube.Client, detail func(string)) error {
	sync, err := flux.GenerateSync(repoaccess.SyncOptions(p.Session, p.Access.Endpoint))
	if err != nil {
		return err
	}
	if err := p.Access.Give(ctx, target, sync, detail); err != nil {
		return err
	}
	return p.Session.ConfirmClaim(ctx, target)
}

// TakeUp is Attach for a cluster that has fetched the fleet repo before, by itself or in an earlier run that was interrupted.
func (p *Pushed) TakeUp(ctx context.Context, target *kube.Client, detail func(string)) error {
	if err := p.Attach(ctx, target, detail); err != nil {
		return err
	}
	return flux.NewSystem(target).EndFetch(ctx)
}

// endFetchTime bounds the cleanup after a fetch that was tried. The cleanup also runs after an interrupted fetch.
const endFetchTime = 30 * time.Second

// TryFetch is Fetch for a cluster whose Flux goes on as it is. TryFetch removes what it made.
func (p *Pushed) TryFetch(ctx context.Context, other *kube.Client) error {
	err := p.Fetch(ctx, other)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFetchTime)
	defer cancel()
	return errors.Join(err, flux.NewSystem(other).EndFetch(ending))
}

// Fetch makes the Flux of another cluster fetch the repo at which Attach would point it.
func (p *Pushed) Fetch(ctx context.Context, other *kube.Client) error {
	secret, err := p.Access.SourceSecret(ctx, other)
	if err != nil {
		return err
	}
	sync, err := flux.GenerateSync(repoaccess.SyncOptions(p.Session, p.Access.Endpoint))
	if err != nil {
		return err
	}
	_, err = flux.NewSystem(other).Fetch(ctx, secret, sync)
	return err
}

// Follow applies the sync. From then on Flux follows this fleet repo. Follow first checks again what Flux follows, which may have changed
// since the run began. It returns the objects that a take-over keeps.
func (p *Pushed) Follow(
	ctx context.Context,
	client *kube.Client,
	components *flux.Components,
	detail func(string),
) (kept []string, err error) {
	s, have := p.Session, p.View(components)
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := s.CheckClaim(there); err != nil {
		return nil, err
	}
	found, err := Find(ctx, s, client, there, have)
	if err != nil {
		return nil, err
	}
	if err := found.Check(ctx); err != nil {
		return nil, err
	}
	sync, err := flux.GenerateSync(repoaccess.SyncOptions(s, p.Access.Endpoint))
	if err != nil {
		return nil, err
	}
	switch url := s.Fleet.Spec.Git.URL; {
	case !mayFollow(ctx, s, found.now, there): // --take-over-flux
		if kept, sync, err = takeOver(ctx, s, client, have, sync); err != nil {
			return nil, err
		}
	case found.now.URL != "" && url != "" && !ownership.SameRepository(found.now.URL, url):
		if err := p.sameHistory(ctx, found.now); err != nil {
			return nil, err
		}
	}
	if err := p.Access.Give(ctx, client, sync, detail); err != nil {
		return nil, err
	}
	return kept, s.ConfirmClaim(ctx, client)
}

// takeOver points Flux at this fleet repo without a loss. It suspends Flux, lists the objects that Flux has applied and the repo does not
// have (only now is this list complete), and keeps them. Then Flux continues without pruning. Its next reconciliation applies the repo,
// which turns pruning on again.
func takeOver(
	ctx context.Context,
	s *session.Session,
	client *kube.Client,
	have View,
	sync []byte,
) (kept []string, without []byte, err error) {
	system := flux.NewSystem(client)
	if _, err := system.Suspend(ctx); err != nil {
		return nil, nil, err
	}
	lost, err := wouldDelete(ctx, s, client, have)
	if err != nil {
		return nil, nil, err
	}
	if err := system.Spare(ctx, lost); err != nil {
		return nil, nil, err
	}
	kept = refNames(lost)
	for _, name := range kept {
		s.Deps.Report.Warn("kept, and no longer in any Git repository that Flux follows: " + name)
	}
	without, err = flux.WithoutPrune(sync)
	return kept, without, err
}

// sameHistory refuses to point Flux at a remote that lacks the commit which Flux has applied last: such a remote is not the repo that was
// served.
func (p *Pushed) sameHistory(ctx context.Context, now *flux.Following) error {
	s := p.Session
	if now.Applied == "" || now.Applied == p.Revision {
		return nil
	}
	has, err := p.Repo.Includes(ctx, s.PushAuth(), p.Revision, now.Applied)
	if err != nil || has {
		return err
	}
	shallow, err := p.Repo.Shallow()
	switch {
	case err != nil:
		return err
	case shallow:
		return diag.Errorf("git fetch --unshallow, then run the same command again",
			"this clone of %s has only the newest commits: it cannot be told whether the commit %.8s is below them, which Flux on %s has applied",
			s.Self.Place(), now.Applied, s.Mgmt.Name)
	}
	return diag.Errorf(takeOverHint,
		"the remote %s does not have the commit %.8s, which Flux on %s has applied: it is not the repo that Flux follows now",
		s.Self.Place(), now.Applied, s.Mgmt.Name)
}
