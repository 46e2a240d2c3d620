package checkup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/within"
)

const (
	inFluxSecret  = "in its Secret " + flux.Namespace + "/" + flux.Name
	fluxTokenHint = "give a token that may only read with --flux-token-file or FLEETCTL_FLUX_TOKEN; or agree with spec.git.sharePushToken: " +
		"true in " + v1alpha1.FileName
	readOnlyHint = "give one that may only read with --flux-token-file or FLEETCTL_FLUX_TOKEN, and revoke this one"
)

// checkFluxToken reports which token Flux reads the remote with, on which clusters, and what an administrator of such a
// cluster could do with it. It refuses to give workload clusters the token that pushes, unless somebody has agreed to
// that.
func (c *checks) checkFluxToken(ctx context.Context) preflight.Result {
	if c.session.GivenOwnToken() {
		username, token := c.session.ReaderAuth()
		return c.checkReader(ctx, &repoaccess.Token{Username: username, Password: token, Own: true}, "is given")
	}
	held, err := c.heldTokens(ctx)
	if err != nil {
		return preflight.FailWith(err)
	}
	if own := held.own(); len(own) > 0 {
		result := preflight.Result{}
		for _, token := range own {
			if result = c.checkReader(ctx, token, "holds"); result.Status != preflight.StatusOK {
				break
			}
		}
		return result
	}
	if c.session.Opts.Git.Token == "" {
		return c.checkUnknownToken(ctx, held)
	}
	if c.session.Fleet.Spec.Git.SharePushToken {
		return preflight.Warn("a token that may only read is safer: --flux-token-file or FLEETCTL_FLUX_TOKEN",
			"every cluster that reads the fleet repo gets the token that pushes, with all its rights, %s: spec.git.sharePushToken agrees to that",
			inFluxSecret)
	}
	for _, name := range held.names() {
		switch token := held.files[name]; {
		case token == nil: // the team's own file
		case token.Elsewhere != "":
			return preflight.Fail(fluxTokenHint, "the token for Flux in %s was given for %s, so it is not sent to %s", name,
				token.Elsewhere, repoaccess.Home(c.session))
		default:
			return preflight.Fail(fluxTokenHint+"; revoke it, because workload clusters have held it",
				"workload clusters hold a token that init was given for pushing, with all its rights, from %s", name)
		}
	}
	readers := c.readingClusters(held)
	if len(readers) > 0 {
		return preflight.Fail(fluxTokenHint, "%s would hold the token that pushes, with all its rights, %s", clusterList(readers), inFluxSecret)
	}
	return preflight.Warn(fluxTokenHint,
		"the management cluster gets the token that pushes, %s; workload clusters get no token, and cannot read the fleet repo", inFluxSecret)
}

// clusterList is text such as "workload cluster a", or "workload clusters a, b and 3 more".
func clusterList(names []string) string {
	if len(names) == 1 {
		return "workload cluster " + names[0]
	}
	return "workload clusters " + plain.Names(names, 3)
}

// unasked tells whether err means that the Git server gave no answer about the repository: it cannot be reached, has a problem, or takes no
// more requests for now.
func unasked(err error) bool {
	return errors.Is(err, gitrepo.ErrNetwork) || errors.Is(err, gitrepo.ErrUnavailable) || errors.Is(err, gitrepo.ErrTooManyRequests)
}

// checkReader looks whether a token of Flux's own reads the remote, and whether it can do more. A cluster holds it, or is given it.
func (c *checks) checkReader(ctx context.Context, token *repoaccess.Token, holds string) preflight.Result {
	err := c.probeWith(ctx, token)
	if unasked(err) || errors.Is(err, gitrepo.ErrTLS) {
		return preflight.Skip("the server was not asked: see git push") // which says the same, with what to do
	}
	if err != nil {
		return preflight.FailWith(diag.Wrap("try the token for Flux", err,
			"give --flux-token-file or FLEETCTL_FLUX_TOKEN a token that may read the repository, and its user name where it has one: "+
				"--flux-username"))
	}
	writes, err := c.mayWrite(ctx, token)
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case writes:
		return preflight.Warn(readOnlyHint, "the token for Flux may push too, and every cluster that reads the fleet repo %s it, %s", holds,
			inFluxSecret)
	case repoaccess.FluxPushes(c.session):
		return preflight.OK(
			"each workload cluster that reads the fleet repo %s a token that only reads, %s; the management cluster holds the one that pushes, "+
				"for image automation", holds, inFluxSecret)
	}
	return preflight.OK("every cluster that reads the fleet repo %s a token that only reads, %s", holds, inFluxSecret)
}

// checkUnknownToken finds out what Flux's present token can do, if this run was given no token to compare it with.
func (c *checks) checkUnknownToken(ctx context.Context, held *tokensHeld) preflight.Result {
	token, where := held.cluster, "the management cluster"
	for _, name := range held.names() {
		if t := held.files[name]; t != nil {
			token, where = t, "workload clusters, from "+name
		}
	}
	if token == nil && held.asked {
		return preflight.OK("Flux reads without a token")
	}
	if token == nil {
		return preflight.Skip("no token was given, and no management cluster can be asked which token Flux holds")
	}
	if err := c.probeWith(ctx, token); err != nil {
		return preflight.Skip("%s: the token there was not given for Flux alone, and what it may do could not be found out", where)
	}
	writes, err := c.mayWrite(ctx, token)
	switch {
	case err != nil:
		return preflight.FailWith(err)
	case writes:
		return preflight.Warn(readOnlyHint, "a token that may push is held by %s, %s", where, inFluxSecret)
	}
	return preflight.OK("a token that only reads is held by %s, %s", where, inFluxSecret)
}

func (c *checks) tokenAuth(token *repoaccess.Token) gitrepo.Auth {
	auth := c.session.PushAuth()
	auth.Username, auth.Token = cmp.Or(token.Username, auth.Username), token.Password
	return auth
}

func (c *checks) probeWith(ctx context.Context, token *repoaccess.Token) error {
	_, err := gitrepo.Probe(ctx, c.session.Fleet.Spec.Git.URL, c.tokenAuth(token), c.session.Fleet.Spec.Git.Branch)
	return err
}

// mayWrite asks the server the first question of a push. It does not push.
func (c *checks) mayWrite(ctx context.Context, token *repoaccess.Token) (bool, error) {
	return gitrepo.MayWrite(ctx, c.session.Fleet.Spec.Git.URL, c.tokenAuth(token))
}

// tokensHeld are the tokens with which the clusters of the fleet read its repo, as far as fleetctl can find out.
type tokensHeld struct {
	cluster *repoaccess.Token // the token of the management cluster
	asked   bool              // whether the management cluster could be asked
	// files have the tokens that init keeps for workload clusters; nil for a team's own file.
	files map[string]*repoaccess.Token
}

// own returns the different tokens that were given for Flux alone.
func (h *tokensHeld) own() []*repoaccess.Token {
	var own []*repoaccess.Token
	seen := map[repoaccess.Token]bool{}
	add := func(t *repoaccess.Token) {
		if t != nil && t.Own && !seen[*t] {
			seen[*t] = true
			own = append(own, t)
		}
	}
	add(h.cluster)
	for _, name := range h.names() {
		add(h.files[name])
	}
	return own
}

func (h *tokensHeld) names() []string { return slices.Sorted(maps.Keys(h.files)) }

// heldTokens reads the tokens of the management cluster, if it is this fleet's and follows this remote, and the tokens
// that the repo has for workload clusters.
func (c *checks) heldTokens(ctx context.Context) (*tokensHeld, error) {
	keys, err := fleetsecrets.LocalKeys(c.session.Deps, c.session.StateFleet(), c.session.Opts.Dir, c.session.Opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	held := &tokensHeld{files: map[string]*repoaccess.Token{}}
	if there := c.ours(ctx); there != nil {
		held.asked = true
		if held.cluster, err = repoaccess.ClusterToken(ctx, c.session, there.Client); err != nil {
			return nil, err
		}
		more, err := fleetsecrets.ClusterKeys(ctx, there.Client)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	for _, f := range c.session.Folders(c.session.Opts.Dir) {
		if err := c.fileToken(held, f.Credentials(f.Environment), keys); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// ours returns the management cluster if it answers, is this fleet's and follows this remote, because another fleet's
// token must not be sent there. Otherwise it returns nil, and the checks of the management cluster say why.
func (c *checks) ours(ctx context.Context) *standing.Cluster {
	if c.session.HostErr != nil {
		return nil
	}
	there, err := c.standing(ctx)
	if err != nil || there == nil || there.Claim == nil || there.Claim.Fleet != c.session.Identity() ||
		!ownership.SameRepository(there.Claim.URL, c.session.Fleet.Spec.Git.URL) {
		return nil
	}
	return there
}

// fileToken reads the token from a file for workload clusters, if the file exists and can be read.
func (c *checks) fileToken(held *tokensHeld, name string, keys secret.Keys) error {
	file, err := repoaccess.ReadCredentialsFile(c.session.Opts.Dir, name, keys)
	if err != nil || file.Plain == nil {
		return err
	}
	token, err := repoaccess.TokenInFile(c.session, file)
	if err == nil {
		held.files[name] = token
	}
	return err
}

// readingClusters returns the workload clusters of the fleet repo whose own Flux gets its credentials from init, also
// in environments that have no credentials yet.
func (c *checks) readingClusters(held *tokensHeld) []string {
	repo, err := fleetrepo.Open(c.session.Opts.Dir)
	if err != nil {
		return nil // no file yet; other checks report a wrong file
	}
	all, _, err := repo.Clusters()
	if err != nil {
		return nil
	}
	var names []string
	for _, cluster := range all {
		credentials := repo.LayoutOf(cluster).Credentials(cluster.Environment)
		if _, theirs := held.files[credentials]; theirs {
			continue
		}
		own := filepath.ToSlash(filepath.Join(path.Dir(filepath.ToSlash(cluster.File)), layout.FluxFile))
		content, err := within.ReadFile(c.session.Opts.Dir, own, fleetrepo.MaxFile)
		if err == nil && bytes.Contains(content, []byte(path.Dir(credentials))) { // it has a Flux that reads the repo
			names = append(names, cluster.Name)
		}
	}
	return names
}
