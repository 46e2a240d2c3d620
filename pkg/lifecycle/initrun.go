package lifecycle

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// The names of init's steps, as users, logs and tests see them.
const (
	stepPreflight = "check this machine"
	stepVersions  = "choose versions"
	stepHost      = "create management cluster"
	stepManifests = "read manifests"
	stepAPI       = "reach its API server"
	stepServe     = "serve fleet repo"
	stepProviders = "install providers"
	stepFlux      = "install Flux"
	stepPush      = "commit and push"
	stepConnect   = "connect Flux to the fleet repo"
	stepSynced    = "wait for Flux to apply it"
)

// initRun is one run of init's steps. The values are what these make for each other: initSteps says who makes and who takes which.
type initRun struct {
	session *session.Session
	// goesOn says that a hand-over or a restore is under way, and that this run goes on with it. It is set before the steps begin.
	goesOn bool
	// held, where it is not nil, tells whether the controllers of the cluster are stopped on purpose: what is installed is then left as it
	// is.
	held    func(ctx context.Context, client *kube.Client) (bool, error)
	changed atomic.Bool // whether any step changed anything

	versions   *steps.Value[*versions]
	manifests  *steps.Value[*manifests]
	kubeconfig *steps.Value[[]byte]  // told as soon as the API server answers, which is long before pods can run
	pods       *steps.Value[podsRun] // told when the host runs pods, and has their images
	client     *steps.Value[*kube.Client]
	endpoint   *steps.Value[*gitEndpoint]
	installed  *steps.Value[*installed]
	pushed     *steps.Value[*pushed]
	kept       *steps.Value[[]string] // what Flux applied before it was taken over, and the fleet repo does not have
}

// podsRun is the news that a host is whole.
type podsRun struct{}

func newInitRun(s *session.Session) *initRun {
	return &initRun{
		session:    s,
		versions:   steps.NewValue[*versions]("the versions"),
		manifests:  steps.NewValue[*manifests]("the manifests"),
		kubeconfig: steps.NewValue[[]byte]("the way to the API server"),
		pods:       steps.NewValue[podsRun]("a host that runs pods"),
		client:     steps.NewValue[*kube.Client]("the client of the API server"),
		endpoint:   steps.NewValue[*gitEndpoint]("the address of the fleet repo"),
		installed:  steps.NewValue[*installed]("the providers that were changed"),
		pushed:     steps.NewValue[*pushed]("the pushed commit"),
		kept:       steps.NewValue[[]string]("the objects that a take-over keeps"),
	}
}

// initSteps is init, in the order in which a reader would do it by hand. Steps that do not need each other run side by side:
// the providers, Flux and the fleet repo meet at "connect".
func (r *initRun) initSteps() []steps.Step {
	return []steps.Step{
		{
			Name: stepPreflight, Run: r.preflight,
			Hint: "`fleetctl doctor` shows each check", Timeout: 2 * time.Minute,
		},
		{
			Name: stepVersions, Needs: []string{stepPreflight}, Work: steps.Make(r.versions, r.chooseVersions),
			Hint: "without a network, give --bundle", Timeout: 5 * time.Minute,
		},
		{
			Name: stepHost, Needs: []string{stepVersions}, Work: steps.Do1(r.ensureHost, steps.Later(r.manifests)).Telling(r.kubeconfig, r.pods),
			Hint: "run the same command again: it cleans up and starts over", Timeout: 15 * time.Minute,
		},
		{
			Name: stepManifests, Needs: []string{stepVersions}, Work: steps.Make1(r.manifests, r.readManifests, r.versions),
			Hint: "without a network, give --bundle", Timeout: 10 * time.Minute,
		},
		{
			// It answers long before the host is whole, which is when most of what is installed can be applied.
			Name: stepAPI, Needs: []string{stepVersions}, Work: steps.Make1(r.client, r.awaitAPI, steps.Later(r.kubeconfig)), Timeout: 15 * time.Minute,
		},
		{
			Name: stepServe, Needs: []string{stepHost}, Work: steps.Make(r.endpoint, r.offerRepo),
			Timeout: time.Minute,
		},
		{
			Name: stepProviders, Needs: []string{stepAPI, stepManifests},
			Work: steps.Make3(r.installed, r.installProviders, r.client, r.manifests, steps.Later(r.pods)),
			Hint: "`fleetctl status` shows why", Timeout: 40 * time.Minute, // an upgrade takes them one after the other
		},
		{
			Name: stepFlux, Needs: []string{stepAPI, stepManifests}, Work: steps.Do3(r.installFlux, r.client, r.manifests, steps.Later(r.pods)),
			Hint: "`fleetctl status` shows why", Timeout: 15 * time.Minute,
		},
		{
			Name: stepPush, Needs: []string{stepServe, stepAPI, stepManifests},
			Work:    steps.Make3(r.pushed, r.commitAndPush, r.endpoint, r.client, r.manifests),
			Timeout: 5 * time.Minute,
		},
		{
			Name: stepConnect, Needs: r.beforeConnect(), Work: steps.Make3(r.kept, r.connect, r.client, r.manifests, r.pushed),
			Timeout: 5 * time.Minute,
		},
		{
			Name: stepSynced, Needs: []string{stepConnect, stepProviders}, Work: steps.Do2(r.waitSynced, r.client, r.pushed),
			Hint: "`fleetctl status` shows what is not healthy", Timeout: 15 * time.Minute,
		},
	}
}

// wantedSteps are those of init, or what makes a standby.
func (r *initRun) wantedSteps() []steps.Step {
	if r.session.StandbyOf != "" {
		return r.standbySteps()
	}
	return r.initSteps()
}

// beforeConnect is what Flux cannot begin without. What an existing fleet repo declares needs the providers' kinds and webhooks: Flux would
// fail, and try again much later. A new one declares no cluster yet, so Flux applies it while the providers start.
func (r *initRun) beforeConnect() []string {
	if r.session.NewFleet {
		return []string{stepPush, stepFlux}
	}
	return []string{stepPush, stepFlux, stepProviders}
}

// did notes that a step changed something.
func (r *initRun) did() { r.changed.Store(true) }

// stepsAround are init's steps with that one before Flux is connected.
func (r *initRun) stepsAround(step steps.Step) []steps.Step {
	all := r.initSteps()
	connect := slices.IndexFunc(all, func(s steps.Step) bool { return s.Name == stepConnect })
	all[connect].Needs = append(slices.Clone(all[connect].Needs), step.Name)
	return slices.Insert(all, connect, step)
}
