package upgrade

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Declare returns the edit that writes the newest versions that fit into fleet.yaml and the features' files, and their digests into
// fleet.lock. It looks for the versions again in each repo that the edit is made in. If it cannot find out the releases of a component, it
// returns an error, because it would declare only half of an upgrade. Features do not depend on each other: a note names those whose charts
// could not be looked up.
func Declare(ctx context.Context, plan func(*fleetrepo.Repo) (*Plan, error), o PlanOptions) func(*fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return func(r *fleetrepo.Repo) (_ *fleetrepo.Edit, err error) {
		found, err := plan(r)
		if err != nil {
			return nil, err
		}
		if err := found.releasesErr(func(c *Component) bool { return c.Type != TypeFeature }); err != nil {
			return nil, err
		}
		ctx := contact.WithSilence(ctx, contact.Watched)
		reader, err := components.Open(ctx, o.Bundle, o.CacheDir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, reader.Close()) }()
		var versions []fleetrepo.Version
		var charts []v1alpha1.LockedFeature
		var notes []string
		for _, c := range found.Components {
			switch {
			case c.Type == TypeFeature && c.Unread:
				notes = append(notes, fmt.Sprintf("The chart of feature %s stays at %s, because its versions could not be looked up.",
					c.Name, c.Declared))
			case !c.Outdated(), c.Type == TypeKubernetes:
			case c.Type == TypeFeature:
				moved := found.charts[c.Name].declared
				moved.Version = c.Newest
				if moved, err = reader.LockChart(ctx, moved); err != nil {
					return nil, err
				}
				charts = append(charts, moved)
			default:
				versions = append(versions, fleetrepo.Version{Name: c.Name, Type: v1alpha1.ComponentType(c.Type), To: c.Newest})
			}
		}
		e, err := r.SetVersions(found.ManagementCluster, versions, charts,
			func(fleet *v1alpha1.Fleet) (*v1alpha1.Lock, []string, error) {
				return reader.Locked(ctx, fleet, nil, false)
			})
		if err == nil {
			e.Notes = append(e.Notes, notes...)
		}
		return e, err
	}
}
