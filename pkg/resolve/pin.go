package resolve

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/components"
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
	declared := components.DeclaredProviders(s.Mgmt.Providers)
	source, err := ProviderSource(s, declared, nil, nil, certManager) //nolint:contextcheck // it reads nothing yet
	if err != nil {
		return nil, err
	}
	if certManager.Version, err = source.CertManagerVersion(); err != nil {
		return nil, err
	}
	chosen, err := source.Resolve(ctx, declared)
	if err != nil {
		return nil, err
	}
	return pinVersions(s, chosen, certManager.Version)
}
