// Package repoaccess decides with what the Flux of each cluster reads the fleet repo: at which address, with which token or key, and with
// which age keys. A token that pushes goes to no cluster that may do with less.
package repoaccess

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// SyncOptions are for a Flux that reads the fleet repo at an endpoint.
func SyncOptions(s *session.Session, at *Endpoint) flux.SyncOptions {
	o := flux.SyncOptions{
		URL: at.URL, Branch: s.Fleet.Spec.Git.Branch, Path: s.Mgmt.Dir(), Interval: interval(s),
	}
	if !at.Credentials.Empty() {
		o.SecretName = flux.Name
	}
	return o
}

// interval at which Flux looks for commits; Validate has checked that it parses.
func interval(s *session.Session) time.Duration {
	d, err := time.ParseDuration(s.Fleet.Spec.Git.Interval)
	if err != nil {
		return time.Minute
	}
	return d
}

// Endpoint is the fleet repo as Flux reaches it.
type Endpoint struct {
	// URL that Flux reads.
	URL string
	// Display is what a person knows it by.
	Display string
	// Local says that this machine serves it: there is no remote.
	Local       bool
	Credentials flux.SourceCredentials
}

// Remote is the fleet repo at its remote.
func Remote(s *session.Session) (*Endpoint, error) {
	credentials, err := s.SourceCredentials()
	if err != nil {
		return nil, err
	}
	git := s.Fleet.Spec.Git
	return &Endpoint{URL: session.SourceURL(git), Display: git.URL, Credentials: credentials}, nil
}
