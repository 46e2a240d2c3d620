package checkup

import (
	"context"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// downloads tells whether doctor asks the servers of releases. init finds out by itself, in its first step after the checks.
func (c *checks) downloads() bool { return c.doctor && c.session.Bundle == nil }

// checkDownloads looks whether the servers answer from which init downloads the manifests of the providers, of cert-manager and of Flux.
func (c *checks) checkDownloads(ctx context.Context) preflight.Result {
	hosts, err := resolve.Reach(ctx, c.session)
	switch {
	case err == nil:
		return preflight.OK("init can download manifests from %s; no registry of images was asked", strings.Join(hosts, ", "))
	case len(hosts) == 0:
		return preflight.FailWith(err)
	}
	return preflight.Fail("check the network or the proxy, or use an offline bundle: --bundle PATH, see docs/tasks/offline.md",
		"init could not download manifests: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
}
