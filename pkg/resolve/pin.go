package resolve

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/session"
)

// FromBundle returns fleet.yaml with the versions of the bundle where it leaves versions open. It needs no value of a variable and no
// network. It is an error if the bundle lacks a provider.
func FromBundle(ctx context.Context, s *session.Session) ([]byte, error) {
	if err := unpackManifests(ctx, s); err != nil {
		return nil, err
	}
	certManager, err := preferLocked(s)
	if err != nil {
		return nil, err
	}
	v := &Versions{}
	_, version, err := fitting(ctx, s, v, nil, certManager)
	if err != nil {
		return nil, err
	}
	return pinVersions(s, v.Providers, version)
}
