package checkup

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// downloads tells whether doctor asks the servers of releases and the registries. init finds out about manifests by itself, in its first
// step after the checks. In this step it also asks the registries, side by side with the servers of manifests: see Registries.
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

// registryTime bounds the questions of Registries.
const registryTime = 30 * time.Second

// Registries is the part of the check "downloads" that init makes before it creates a host. A registry that does not answer, or refuses,
// is otherwise found out minutes later, when the first image is pulled. A host that is there has its images, and its registries are not
// asked. --skip-preflight turns the error into a warning.
func Registries(ctx context.Context, s *session.Session) error {
	if s.Host == nil {
		return nil // the check "name" has reported that
	}
	if st, err := s.Host.State(ctx); err != nil || st == host.StateRunning || st == host.StateStopped {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	registries, err := resolve.ReachRegistries(bounded, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	found := preflight.Reports{{Name: Downloads, Result: judgeDownloads(nil, nil, registries, err)}}
	Excuse(found, s.Opts.SkipPreflight)
	switch r := found[0]; r.Status {
	case preflight.StatusFail:
		return diag.Errorf(r.Hint+"; to go on nevertheless: --skip-preflight "+Downloads, "%s: %s", r.Name, r.Summary)
	case preflight.StatusWarn:
		s.Deps.Report.Warn(r.Name + ": " + r.Summary)
	case preflight.StatusOK, preflight.StatusSkip:
	}
	return nil
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
