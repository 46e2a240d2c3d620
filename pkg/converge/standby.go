package converge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

const (
	stepRest  = "put it to rest"
	stepFetch = "have it fetch the fleet repo"
)

// A standby is a management cluster that init makes like the one which it takes over from, of the same part of fleet.yaml, and then puts to
// rest. In the fleet repo both have one folder: the standby has nothing of its own there.

// standbySteps are init for a standby: all but connecting Flux, and then it is put to rest.
func (r *Run) standbySteps() []steps.Step {
	return append(UpTo(r.Steps(), StepHost, StepProviders, StepFlux, StepPush), steps.Step{
		Name: stepRest, Needs: []string{StepHost, StepProviders, StepFlux}, Work: steps.Do1(r.rest, r.Client), Timeout: 15 * time.Minute,
		Hint: "run the same command again: it goes on",
	}, steps.Step{
		Name: stepFetch, Needs: []string{stepRest, StepPush}, Work: steps.Do2(r.fetch, r.Client, r.Pushed), Timeout: 5 * time.Minute,
		Hint: "run the same command again",
	})
}

// UpTo are those of the steps that the named ones need, and themselves.
func UpTo(all []steps.Step, names ...string) []steps.Step {
	needed := map[string]bool{}
	for _, name := range names {
		needed[name] = true
	}
	for _, s := range slices.Backward(all) { // what is needed stands before
		if needed[s.Name] {
			for _, name := range s.Needs {
				needed[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s steps.Step) bool { return !needed[s.Name] })
}

// StandbyNext are the commands that follow once a standby rests.
func StandbyNext(s *session.Session) []string {
	return []string{
		fmt.Sprintf("fleetctl standby refresh %s             # tries the last snapshot of %s on it; have it run by a timer",
			s.Mgmt.Name, s.StandbyOf),
		fmt.Sprintf("fleetctl status --management %s         # how it is, and how old that snapshot is", s.Mgmt.Name),
		fmt.Sprintf("fleetctl standby activate %s            # on the day that %s is lost", s.Mgmt.Name, s.StandbyOf),
	}
}

// whyHeld says why what is installed is left as it is.
func (r *Run) whyHeld() string {
	if r.Session.StandbyOf != "" {
		return "it is at rest, with what fleet.yaml declares"
	}
	return "the restore is under way"
}

// RestsAsDeclared tells whether the standby is at rest with the versions that fleet.yaml declares. With others it is brought to those,
// behind its fence.
func (r *Run) RestsAsDeclared(ctx context.Context, client *kube.Client) (bool, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil || !journal.IsStandby() {
		return false, err
	}
	m, told := r.Manifests.Peek()
	if !told {
		return false, nil
	}
	manager, err := capi.New(client)
	if err != nil {
		return false, err
	}
	installed, err := manager.Installed(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range m.Providers {
		if !slices.ContainsFunc(installed, func(have capi.InstalledProvider) bool { return have.Provider.String() == p.String() }) {
			return false, nil
		}
	}
	report, err := flux.NewSystem(client).Status(ctx)
	return err == nil && report.Version == r.Session.Fleet.Spec.Flux.Version, err
}

// rest puts the standby to rest, or sees that it is.
func (r *Run) rest(ctx context.Context, client *kube.Client, detail func(string)) error {
	s := r.Session
	changed, err := handover.MakeStandby(ctx, handover.StandbyOptions{
		Fleet: s.Identity(), Target: handover.Side{Name: s.Mgmt.Name, Client: client}, Of: s.StandbyOf,
		Progress: func(progress handover.Progress) { detail(progress.String()) },
	})
	if err == nil && !changed {
		return steps.NothingToDo("it is a standby of " + s.StandbyOf)
	}
	r.Did()
	return err
}

// fetch has the standby fetch the fleet repo: on the day that it is needed, it can.
func (r *Run) fetch(ctx context.Context, client *kube.Client, p *following.Pushed, detail func(string)) error {
	detail("waiting until it has fetched " + p.Access.Endpoint.Display)
	if err := p.Fetch(ctx, client); err != nil {
		return err
	}
	return r.Session.ConfirmClaim(ctx, client)
}
