// Package converge brings a management cluster to what its fleet repo declares, from whatever is there: the steps of init. Whoever hands
// work over, restores it or rehearses that takes the same steps, around a step of its own.
package converge

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of init's steps, as users, logs and tests see them.
const (
	StepPreflight = "check this machine"
	StepVersions  = "choose versions"
	StepHost      = "create management cluster"
	StepManifests = "read manifests"
	StepAPI       = "reach its API server"
	StepServe     = "serve fleet repo"
	StepProviders = "install providers"
	StepFlux      = "install Flux"
	StepPush      = "commit and push"
	StepConnect   = "connect Flux to the fleet repo"
	StepSynced    = "wait for Flux to apply it"
)

// Run is one run of init's steps. The values are what these make for each other: Steps says who makes and who takes which.
type Run struct {
	Session *session.Session
	// GoesOn says that a hand-over or a restore is under way, and that this run goes on with it. It is set before the steps begin. The fleet
	// repo then names the cluster that has the work in the end only once it has it: see Name.
	GoesOn bool
	// Held, where it is not nil, tells whether the controllers of the cluster are stopped on purpose: what is installed is then left as it
	// is.
	Held    func(ctx context.Context, client *kube.Client) (bool, error)
	Changed atomic.Bool // whether any step changed anything

	versions   *steps.Value[*resolve.Versions]
	Manifests  *steps.Value[*resolve.Manifests]
	Kubeconfig *steps.Value[[]byte]  // told as soon as the API server answers, which is long before pods can run
	Pods       *steps.Value[PodsRun] // told when the host runs pods, and has their images
	Client     *steps.Value[*kube.Client]
	Endpoint   *steps.Value[*repoaccess.Endpoint]
	Installed  *steps.Value[*Installed]
	Flux       *steps.Value[[]Upgraded] // how Flux was upgraded, if it was
	Pushed     *steps.Value[*following.Pushed]
	Kept       *steps.Value[[]string] // what Flux applied before it was taken over, and the fleet repo does not have
}

// PodsRun is the news that a host is whole.
type PodsRun struct{}

// NewRun is a run that has made nothing yet.
func NewRun(s *session.Session) *Run {
	return &Run{
		Session:    s,
		versions:   steps.NewValue[*resolve.Versions]("the versions"),
		Manifests:  steps.NewValue[*resolve.Manifests]("the manifests"),
		Kubeconfig: steps.NewValue[[]byte]("the way to the API server"),
		Pods:       steps.NewValue[PodsRun]("a host that runs pods"),
		Client:     steps.NewValue[*kube.Client]("the client of the API server"),
		Endpoint:   steps.NewValue[*repoaccess.Endpoint]("the address of the fleet repo"),
		Installed:  steps.NewValue[*Installed]("the providers that were changed"),
		Flux:       steps.NewValue[[]Upgraded]("the upgrade of Flux"),
		Pushed:     steps.NewValue[*following.Pushed]("the pushed commit"),
		Kept:       steps.NewValue[[]string]("the objects that a take-over keeps"),
	}
}

// Steps is init, in the order in which a reader would do it by hand. Steps that do not need each other run side by side:
// the providers, Flux and the fleet repo meet at "connect".
func (r *Run) Steps() []steps.Step {
	return []steps.Step{
		{
			Name: StepPreflight, Run: r.preflight,
			Hint: "`fleetctl doctor` shows each check", Timeout: 2 * time.Minute,
		},
		{
			Name: StepVersions, Needs: []string{StepPreflight}, Work: steps.Make(r.versions, r.chooseVersions),
			Hint: "without a network, give --bundle", Timeout: 5 * time.Minute,
		},
		{
			Name: StepHost, Needs: []string{StepVersions}, Work: steps.Do1(r.ensureHost, steps.Later(r.Manifests)).Telling(r.Kubeconfig, r.Pods),
			Hint: "run the same command again: it cleans up and starts over", Timeout: 15 * time.Minute,
		},
		{
			Name: StepManifests, Needs: []string{StepVersions}, Work: steps.Make1(r.Manifests, r.readManifests, r.versions),
			Hint: "without a network, give --bundle", Timeout: 10 * time.Minute,
		},
		{
			// It answers long before the host is whole, which is when most of what is installed can be applied.
			Name: StepAPI, Needs: []string{StepVersions}, Work: steps.Make1(r.Client, r.awaitAPI, steps.Later(r.Kubeconfig)),
			Timeout: 15 * time.Minute,
		},
		{
			Name: StepServe, Needs: []string{StepHost}, Work: steps.Make(r.Endpoint, r.offerRepo),
			Timeout: time.Minute,
		},
		{
			Name: StepProviders, Needs: []string{StepAPI, StepManifests},
			Work: steps.Make3(r.Installed, r.installProviders, r.Client, r.Manifests, steps.Later(r.Pods)),
			Hint: "`fleetctl status` shows why", Timeout: 40 * time.Minute, // an upgrade takes them one after the other
		},
		{
			Name: StepFlux, Needs: []string{StepAPI, StepManifests},
			Work: steps.Make3(r.Flux, r.installFlux, r.Client, r.Manifests, steps.Later(r.Pods)),
			Hint: "`fleetctl status` shows why", Timeout: 15 * time.Minute,
		},
		{
			Name: StepPush, Needs: []string{StepServe, StepAPI, StepManifests},
			Work:    steps.Make3(r.Pushed, r.commitAndPush, r.Endpoint, r.Client, r.Manifests),
			Timeout: 5 * time.Minute,
		},
		{
			Name: StepConnect, Needs: r.beforeConnect(), Work: steps.Make3(r.Kept, r.connect, r.Client, r.Manifests, r.Pushed),
			Timeout: 5 * time.Minute,
		},
		{
			Name: StepSynced, Needs: []string{StepConnect, StepProviders}, Work: steps.Do2(r.waitSynced, r.Client, r.Pushed),
			Hint: "`fleetctl status` shows what is not healthy", Timeout: 15 * time.Minute,
		},
	}
}

// WantedSteps are those of init, or what makes a standby.
func (r *Run) WantedSteps() []steps.Step {
	if r.Session.StandbyOf != "" {
		return r.standbySteps()
	}
	return r.Steps()
}

// beforeConnect is what Flux cannot begin without. What an existing fleet repo declares needs the providers' kinds and webhooks: Flux would
// fail, and try again much later. A new one declares no cluster yet, so Flux applies it while the providers start.
func (r *Run) beforeConnect() []string {
	if r.Session.NewFleet {
		return []string{StepPush, StepFlux}
	}
	return []string{StepPush, StepFlux, StepProviders}
}

// Did notes that a step changed something.
func (r *Run) Did() { r.Changed.Store(true) }

// StepsAround are init's steps with these before Flux is connected.
func (r *Run) StepsAround(between ...steps.Step) []steps.Step {
	all := r.Steps()
	connect := slices.IndexFunc(all, func(s steps.Step) bool { return s.Name == StepConnect })
	all[connect].Needs = slices.Clone(all[connect].Needs)
	for _, step := range between {
		all[connect].Needs = append(all[connect].Needs, step.Name)
	}
	return slices.Insert(all, connect, between...)
}

func (r *Run) chooseVersions(ctx context.Context, detail func(string)) (*resolve.Versions, error) {
	var registries error
	var asked sync.WaitGroup
	asked.Go(func() { registries = checkup.Registries(ctx, r.Session) })
	versions, err := resolve.Choose(ctx, r.Session, detail)
	asked.Wait()
	if err != nil {
		return nil, err
	}
	return versions, registries
}

func (r *Run) readManifests(ctx context.Context, v *resolve.Versions, _ func(string)) (*resolve.Manifests, error) {
	return resolve.Read(ctx, r.Session, v)
}
