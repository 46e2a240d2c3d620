package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Declare returns the edit that writes the newest versions that fit into fleet.yaml and the features' files, and their digests into
// fleet.lock. It looks for the versions again in each repo that the edit is made in. If it cannot find out the releases of a component, it
// returns an error, because it would declare only half of an upgrade. Features do not depend on each other: a note names those whose charts
// could not be looked up. fleet.lock leaves out a provider of another management cluster that has no version yet.
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
		if len(versions) > 0 { // else they are left to init
			m, err := r.Fleet.ManagementCluster(found.ManagementCluster)
			if err != nil {
				return nil, err
			}
			versions = append(versions, found.undeclared(m.Providers)...)
		}
		e, err := r.SetVersions(found.ManagementCluster, versions, charts,
			func(fleet *v1alpha1.Fleet, lock *v1alpha1.Lock) (*v1alpha1.Lock, []string, error) {
				return lockMore(ctx, r, reader, fleet, lock, charts)
			})
		if err == nil {
			e.Notes = append(e.Notes, notes...)
		}
		return e, err
	}
}

// undeclared returns the versions to write for the providers that fleet.yaml lists without one, and that are not outdated. The version that
// runs stays. Of a provider that is not installed it is the newest one, which init would choose as well.
func (p *Plan) undeclared(listed []v1alpha1.Provider) (out []fleetrepo.Version) {
	for _, l := range listed {
		i := slices.IndexFunc(p.Components, func(c Component) bool { return c.Name == l.Name && c.Type == string(fleetrepo.TypeOf(l)) })
		if i < 0 || p.Components[i].Declared != "" || p.Components[i].Outdated() {
			continue
		}
		if to := cmp.Or(p.Components[i].Installed, p.Components[i].Newest); to != "" {
			out = append(out, fleetrepo.Version{Name: l.Name, Type: v1alpha1.ComponentType(fleetrepo.TypeOf(l)), To: to})
		}
	}
	return out
}

// lockMore returns the content of fleet.lock for a changed fleet, and the charts of features that lock lacks, except for those that move to
// other versions. What lock has stays: whether the digests are still right is a question for `fleetctl lock` and init.
func lockMore(
	ctx context.Context, r *fleetrepo.Repo, reader *components.Reader, fleet *v1alpha1.Fleet, lock *v1alpha1.Lock,
	moved []v1alpha1.LockedFeature,
) (*v1alpha1.Lock, []string, error) {
	all, notes, err := reader.Locked(ctx, fleet, lock, components.LockMore)
	if err != nil {
		return nil, nil, err
	}
	charts, err := r.FeatureCharts()
	if err != nil {
		return nil, nil, err
	}
	charts = slices.DeleteFunc(charts, func(f v1alpha1.LockedFeature) bool {
		return lock.FindFeature(f) != nil || slices.ContainsFunc(moved, func(m v1alpha1.LockedFeature) bool { return m.Name == f.Name })
	})
	features, more, err := reader.LockedFeatures(ctx, charts, lock, false)
	all.Features = features
	return all, append(notes, more...), err
}
