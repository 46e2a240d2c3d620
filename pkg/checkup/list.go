package checkup

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// entry is a check of the list.
type entry struct {
	name string
	// applies tells whether the check has something to look at in a session; nil means always. It is not called if the
	// management cluster belongs to another fleet. Then only the checks without applies run, because all others would
	// look at the other fleet's objects.
	applies func(*checks) bool
	look    func(*checks, context.Context) preflight.Result
}

// list has all checks, in the order of reports.
var list = []entry{
	{"disk for state", nil, func(c *checks, ctx context.Context) preflight.Result {
		return preflight.Disk(c.session.Deps.Store.Dir, minFree)(ctx)
	}},
	{"disk for cache", nil, func(c *checks, ctx context.Context) preflight.Result {
		return preflight.Disk(c.session.Deps.CacheDir, minFree)(ctx)
	}},
	{"clock", nil, func(_ *checks, ctx context.Context) preflight.Result {
		return preflight.Clock(time.Now, buildDate())(ctx)
	}},
	{"name", inOurFleet, (*checks).checkName},
	{Fleet, nil, (*checks).checkFleet},
	{Flux, inOurFleet, (*checks).checkFlux},
	{"provider variables", inOurFleet, (*checks).checkVariables},
	{"secret files", (*checks).hasSecretFiles, (*checks).checkSecretFiles},
	{"fleet tags", (*checks).hasTags, (*checks).checkFleetTags},
	{"container engine", (*checks).onContainers, ofEngine((*preflight.Engine).CheckVersion)},
	{"cgroups", (*checks).onContainers, ofEngine((*preflight.Engine).CheckCgroups)},
	{"memory", (*checks).onContainers, ofEngine((*preflight.Engine).CheckMemory)},
	{"engine disk", (*checks).onContainers, ofEngine((*preflight.Engine).CheckStore)},
	{"inotify limits", (*checks).onContainers, ofEngine((*preflight.Engine).CheckInotify)},
	{"kernel", (*checks).onContainers, ofEngine((*preflight.Engine).CheckKernel)},
	{"engine socket", (*checks).makesContainers, ofEngine((*preflight.Engine).CheckSocket)},
	{"other users", (*checks).ofProcesses, (*checks).checkNeighbours},
	{"docker provider's port", (*checks).runsDockerProvider, (*checks).checkProviderPort},
	{"git", (*checks).servesItself, (*checks).checkGit},
	{"git server's port", (*checks).servesItself, (*checks).checkServerPort},
	{"git push", (*checks).hasRemote, (*checks).checkPush},
	{"git deploy key", (*checks).readsByKey, (*checks).checkDeployKey},
	{"git token for flux", (*checks).readsByToken, (*checks).checkFluxToken},
	{Downloads, (*checks).downloads, (*checks).checkDownloads},
	// init pins the images instead of checking that they are pinned.
	{"image digests", (*checks).forDoctor, (*checks).checkImageLock},
}

func inOurFleet(*checks) bool { return true }

func ofEngine(look func(*preflight.Engine, context.Context) preflight.Result) func(*checks, context.Context) preflight.Result {
	return func(c *checks, ctx context.Context) preflight.Result { return look(c.engine, ctx) }
}

func (c *checks) forDoctor() bool       { return c.doctor }
func (c *checks) onContainers() bool    { return c.session.Traits().Containers }
func (c *checks) makesContainers() bool { return c.onContainers() && c.session.UsesEngine() }
func (c *checks) ofProcesses() bool     { return c.session.Traits().Processes }
func (c *checks) servesItself() bool    { return c.session.Fleet.Spec.Git.Scheme() == v1alpha1.GitLocal }
func (c *checks) hasRemote() bool       { return !c.servesItself() }

// runsDockerProvider tells whether the docker provider will run as a process. A standby runs no provider before it takes over.
func (c *checks) runsDockerProvider() bool {
	return c.ofProcesses() && c.session.UsesEngine() && (c.session.StandbyOf == "" || c.goesOn)
}

// readsByKey tells whether Flux reads the fleet repo with a deploy key, and the server may be asked about the key.
func (c *checks) readsByKey() bool {
	return c.session.Fleet.Spec.Git.Scheme() == v1alpha1.GitSSH && c.clonedElsewhere() == ""
}

// readsByToken tells whether Flux reads the fleet repo with a token, and the server may be asked about the token.
func (c *checks) readsByToken() bool {
	return c.hasRemote() && c.session.Fleet.Spec.Git.Scheme() != v1alpha1.GitSSH && c.clonedElsewhere() == ""
}

// hasTags tells whether clusters carry the tags of a fleet, or whether this cannot be found out.
func (c *checks) hasTags() bool {
	tags, err := c.tags()
	return err != nil || len(tags) > 0
}

// tags are the tags of the clusters in the fleet repo, which is read once.
func (c *checks) tags() ([]fleetrepo.FleetTag, error) {
	return c.fleetTags.Once(func() ([]fleetrepo.FleetTag, error) {
		return fleetrepo.New(c.session.Opts.Dir, c.session.Fleet).FleetTags()
	})
}

// newChecks returns the checks of a session.
func newChecks(s *session.Session) *checks {
	return &checks{session: s, engine: preflight.NewEngine(nil)}
}

// applying returns the checks of the list that have something to look at.
func (c *checks) applying() []preflight.Check {
	var applying []preflight.Check
	for _, e := range list {
		if e.applies == nil || c.session.Stranger == nil && e.applies(c) {
			applying = append(applying, preflight.Check{
				Name: e.name,
				Run:  func(ctx context.Context) preflight.Result { return e.look(c, ctx) },
			})
		}
	}
	return applying
}
