package upgrade

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Declare returns the edit that writes the newest versions that fit into fleet.yaml, and their digests into fleet.lock.
// It looks for the versions again in each repo that the edit is made in. If something cannot be found out, it returns
// an error, because it would declare only half of an upgrade.
func Declare(ctx context.Context, plan func(*fleetrepo.Repo) (*Plan, error), o PlanOptions) func(*fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		found, err := plan(r)
		if err != nil {
			return nil, err
		}
		if err := found.releasesErr(); err != nil {
			return nil, err
		}
		var versions []fleetrepo.Version
		for _, c := range found.Components {
			if c.Outdated() && c.Type != TypeKubernetes {
				versions = append(versions, fleetrepo.Version{Name: c.Name, Type: v1alpha1.ComponentType(c.Type), To: c.Newest})
			}
		}
		return r.SetVersions(found.ManagementCluster, versions, func(fleet *v1alpha1.Fleet) (_ *v1alpha1.Lock, notes []string, err error) {
			reader, err := components.Open(ctx, o.Bundle, o.CacheDir)
			if err != nil {
				return nil, nil, err
			}
			defer func() { err = errors.Join(err, reader.Close()) }()
			return reader.Locked(ctx, fleet, nil, false)
		})
	}
}
