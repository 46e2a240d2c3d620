// Package checkup makes the checks of doctor, which are also the first step of init. It checks this machine, an
// existing management cluster, what fleet.yaml names, and the server of the fleet repo. The checks only look.
package checkup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/variables"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// minFree is the free space that the state and cache folders need: for kubeconfigs, unpacked manifests and an unpacked
// bundle.
const minFree = 2 << 30

// ForDoctor makes the checks of doctor: those of init, and one for something that init corrects itself.
func ForDoctor(s *session.Session) []preflight.Check {
	c := newChecks(s)
	c.doctor = true
	return c.applying()
}

// ForInit makes the checks before the steps of init. goesOn says that init continues a hand-over or a restore.
func ForInit(s *session.Session, goesOn bool) []preflight.Check {
	c := newChecks(s)
	c.goesOn = goesOn
	return c.applying()
}

// clonedElsewhere is session.ClonedFrom, once for all checks.
func (c *checks) clonedElsewhere() string {
	server, _ := c.elsewhere.Once(func() (string, error) { return c.session.ClonedFrom(), nil })
	return server
}

// checkGit looks whether the fleet repo can be served from this machine.
func (c *checks) checkGit(ctx context.Context) preflight.Result {
	if err := gitserve.CheckGit(ctx); err != nil {
		return preflight.FailWith(err)
	}
	return preflight.OK("git is installed, and can serve the fleet repo")
}

// checkServerPort checks that the port of the fleet repo's server is still free, if the server has ended. Flux knows
// the fleet repo by this port.
func (c *checks) checkServerPort(ctx context.Context) preflight.Result {
	s := c.session
	server, err := gitserve.Status(ctx, s.Cluster.Path(management.GitServeDir))
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case server.Running:
		return preflight.OK("the fleet repo is being served")
	case server.Port == 0:
		return preflight.OK("init will choose a free port")
	}
	//nolint:gosec // it is a port
	return preflight.Port(server.Listen.String(), uint16(server.Port),
		"the fleet repo's server, at the address that Flux knows")(ctx)
}

// buildDate returns when this program was built; zero if that is unknown.
func buildDate() time.Time {
	t, err := time.Parse(time.RFC3339, version.Get().Date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// checkName checks that the management cluster's name is free, or belongs to this fleet's management cluster.
func (c *checks) checkName(ctx context.Context) preflight.Result {
	s := c.session
	if _, ok := errors.AsType[*engine.NotFoundError](s.HostErr); ok {
		return preflight.Skip("no container engine answers") // another check reports this, with its fix
	}
	if s.HostErr != nil {
		return preflight.FailWith(s.HostErr)
	}
	st, err := s.Host.State(ctx)
	if err != nil {
		return preflight.FailWith(err)
	}
	if st == host.StateForeign {
		return preflight.FailWith(management.ForeignError(ctx, s.Host))
	}
	if st == host.StateAbsent {
		return preflight.OK("%s is free", s.Mgmt.Name)
	}
	// fleetctl may have no right to install into a host that it has not made
	if guarded, ok := s.Host.(host.Guarded); ok {
		if err := guarded.CheckAccess(ctx); err != nil {
			return preflight.FailWith(err)
		}
		return preflight.OK("%s is there, and we are its administrator", s.Mgmt.Name)
	}
	return preflight.OK("%s is ours, and %s", s.Mgmt.Name, st)
}

// checkVariables resolves the providers' variables in fleet.yaml. Variables that the components need and nobody sets
// are found when init reads the components, which is also before init creates anything.
func (c *checks) checkVariables(ctx context.Context) preflight.Result {
	s := c.session
	var commands []string
	var resolved *variables.Resolved
	var err error
	if s.Opts.NoCommands {
		var providers []v1alpha1.Provider
		providers, commands = variables.WithoutCommands(s.Mgmt.Providers)
		resolved, err = variables.Resolve(ctx, providers, s.SourcesDir(), s.Deps.Inputs())
	} else {
		resolved, err = s.Variables(ctx)
	}
	if err == nil && len(resolved.Vault) > 0 {
		_, err = fromvault.Client(s)
	}
	if err != nil {
		return preflight.FailWith(err)
	}
	values, unasked := resolved.Values, ""
	if len(commands) > 0 {
		unasked = "; without --run-commands, no command was asked for: " + strings.Join(commands, ", ")
	}
	if without := c.withoutKey(values); len(without) > 0 {
		return preflight.Warn("put the source of the key back into fleet.yaml (`git revert` of the commit that a pivot made), "+
			"unless this machine is in AWS and has the role of the provider",
			"fleet.yaml gives no key: %s; on this machine, the provider may have no right to its cloud%s", strings.Join(without, ", "), unasked)
	}
	if unasked != "" {
		return preflight.OK("%d declared%s", len(values)+len(commands), unasked)
	}
	return preflight.OK("%d declared, all have a value", len(values))
}

// withoutKey returns the variables whose value says that a role of the machine takes the place of a key, as after a pivot into the cloud,
// if the host is on this machine, which seldom has such a role.
func (c *checks) withoutKey(values map[string]string) []string {
	if c.session.Traits().Elsewhere {
		return nil
	}
	var without []string
	for _, p := range c.session.Mgmt.Providers {
		for _, v := range p.Variables {
			if p.Type == v1alpha1.ProviderInfrastructure && credentials.IsNone(p.Name, v.Name, values[v.Name]) {
				without = append(without, v.Name)
			}
		}
	}
	return without
}

// checkPush checks that the remote answers, and accepts a push to the branch. A protected branch fails this check.
func (c *checks) checkPush(ctx context.Context) preflight.Result {
	s := c.session
	git := s.Fleet.Spec.Git
	if from := c.clonedElsewhere(); from != "" {
		return preflight.Warn("if you trust that server with your tokens: --run-commands",
			"%s was not asked, because that would send it a token, and this clone comes from another server, %s", git.URL, from)
	}
	auth := s.PushAuth()
	if _, err := gitrepo.Probe(ctx, git.URL, auth, git.Branch); err != nil {
		return preflight.FailWith(s.ExplainRemote(git.URL, err))
	}
	if err := gitrepo.CheckPush(ctx, git.URL, auth, git.Branch); err != nil {
		return preflight.FailWith(s.ExplainRemote(git.URL, err))
	}
	return preflight.OK("%s takes pushes to %s", git.URL, git.Branch)
}

// checkDeployKey checks that the remote lets Flux's own key read.
func (c *checks) checkDeployKey(ctx context.Context) preflight.Result {
	s := c.session
	key, err := s.EnsureDeployKey()
	if err != nil {
		return preflight.FailWith(err)
	}
	auth := s.PushAuth()
	auth.KeyFile, auth.Key = "", key.Private
	git := s.Fleet.Spec.Git
	_, err = gitrepo.Probe(ctx, git.URL, auth, git.Branch)
	if err == nil {
		return preflight.OK("Flux can read %s", git.URL)
	}
	switch {
	case errors.Is(err, gitrepo.ErrHostKey), unasked(err):
		return preflight.Skip("the server was not asked: see git push") // which says the same, with what to do
	case !errors.Is(err, gitrepo.ErrAuth) && !errors.Is(err, gitrepo.ErrNotFound):
		return preflight.FailWith(err)
	}
	where := "as a read-only deploy key of the repository"
	if page := git.DeployKeyPage(); page != "" {
		where = "as a read-only deploy key at " + page
	}
	return preflight.Fail(fmt.Sprintf("add this key %s, then run the same command again: %s", where, strings.TrimSpace(key.Public)),
		"Flux's own key may not read %s yet", git.URL)
}
