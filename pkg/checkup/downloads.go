package checkup

import (
	"context"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// downloads tells whether doctor asks the servers of releases and the registries. init finds out about manifests by itself, in its first
// step after the checks, and about images only when it pulls the first one.
func (c *checks) downloads() bool { return c.doctor && c.session.Bundle == nil }

// checkDownloads looks whether the servers answer from which init downloads the manifests of the providers, of cert-manager and of Flux,
// and the registries of images.
func (c *checks) checkDownloads(ctx context.Context) preflight.Result {
	var servers, registries []string
	var ofManifests, ofImages error
	var both sync.WaitGroup
	both.Go(func() { servers, ofManifests = resolve.Reach(ctx, c.session) })
	both.Go(func() { registries, ofImages = resolve.ReachRegistries(ctx, c.session) })
	both.Wait()
	return judgeDownloads(servers, ofManifests, registries, ofImages)
}

// judgeDownloads says what init can download. An error without servers, or without registries, is a fault of what names them.
func judgeDownloads(servers []string, ofManifests error, registries []string, ofImages error) preflight.Result {
	var can, cannot []string
	for _, of := range []struct {
		what  string
		hosts []string
		err   error
	}{{"manifests", servers, ofManifests}, {"images", registries, ofImages}} {
		switch {
		case of.err != nil && len(of.hosts) == 0:
			return preflight.FailWith(of.err)
		case of.err != nil:
			cannot = append(cannot, of.what+": "+strings.ReplaceAll(of.err.Error(), "\n", "; "))
		case len(of.hosts) > 0:
			can = append(can, of.what+" from "+strings.Join(of.hosts, ", "))
		}
	}
	switch {
	case len(cannot) > 0:
		return preflight.Fail("check the network or the proxy, or use an offline bundle: --bundle PATH, see docs/tasks/offline.md",
			"init could not download %s", strings.Join(cannot, "; nor "))
	case len(can) == 0:
		return preflight.OK("init downloads nothing")
	}
	return preflight.OK("init can download %s", strings.Join(can, ", and "))
}
