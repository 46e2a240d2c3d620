package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// bringShared adds what all clusters of an environment share to the edit that adds a cluster, where that cluster is the first one: in the
// folder of a further cloud, or at a management cluster that fleet.yaml got after the environment had its features and tenants.
func (r *Repo) bringShared(e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, environment string) error {
	if err := r.openCloud(e, m, at, environment); err != nil {
		return err
	}
	used, first, err := r.usedIn(m, environment)
	if err != nil || !first {
		return err
	}
	from, err := r.fill(e, m, at, environment, used)
	if err != nil {
		return err
	}
	if from != "" {
		e.Notes = append(e.Notes, fmt.Sprintf(
			"It is the first cluster of %s at management cluster %s: what %s has for all its clusters comes along from %s.",
			environment, m.Name, environment, from))
	}
	if at.IsHome() {
		return nil
	}
	_, err = r.fill(e, m, m.Layout(), environment, used) // from now on, the home counts as filled
	return err
}

// fill writes the missing files of the folder that an environment's clusters share, as another management cluster has them. from is the
// folder there; "" if nothing is missing.
func (r *Repo) fill(
	e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, environment string, used map[layout.Layout]bool,
) (from string, err error) {
	there, found := r.sharedElsewhere(m, at, environment, used)
	if !found {
		return "", nil
	}
	move := &mover{repo: r, into: r, from: there, at: at, to: m, environment: environment}
	wanted, err := move.shared()
	if err != nil {
		return "", err
	}
	present := r.presentWith(&e.Changes)
	missing := slices.DeleteFunc(wanted, func(f manifest.File) bool { // what is there may be the team's
		return present(f.Path) || layout.IsKustomization(f.Path) && r.kustomizationIn(path.Dir(f.Path)) != ""
	})
	own, err := scaffold.EnvironmentFolder(at, scaffold.Environment{Name: environment})
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(missing, func(f manifest.File) bool {
		return !slices.ContainsFunc(own, func(o manifest.File) bool { return o.Path == f.Path })
	}) {
		return "", nil // the environment has nothing yet, and init writes these files
	}
	e.Changes.Write(missing...)
	for _, f := range missing {
		if err := move.lists(&e.Changes, f.Path); err != nil {
			return "", err
		}
	}
	return there.Cluster(environment, layout.CommonDir), move.tenants(e)
}

// lists adds a moved file to the kustomization.yaml by which the target applies it. If the source has a kustomization.yaml in the same
// folder, the target gets its entry for the file, which may be a folder, or none.
func (m *mover) lists(cs *manifest.ChangeSet, file string) error {
	common := m.at.Cluster(m.environment, layout.CommonDir)
	roots := []string{m.at.Apps(m.environment)}
	for _, scope := range layout.Scopes() {
		roots = append(roots, path.Join(common, scope))
	}
	for dir := path.Dir(file); isBelow(dir, common); dir = path.Dir(dir) {
		entry := relativeTo(dir, file)
		switch like := path.Join(m.from.Cluster(m.environment, layout.CommonDir), strings.TrimPrefix(dir, common)); {
		case m.into.kustomizationIn(dir) == "" && slices.Contains(roots, dir):
			return nil // all files there are applied
		case m.into.kustomizationIn(dir) == "":
			continue
		case m.repo.kustomizationIn(like) != "":
			return m.repo.list(&manifest.ChangeSet{}, like, func(entries []string, src []byte) ([]byte, error) {
				i := slices.IndexFunc(entries, func(listed string) bool { return isBelow(entry, listed) })
				if i < 0 {
					return src, nil
				}
				return src, m.into.listed(cs, dir, entries[i], true)
			})
		case layout.IsKustomization(file) || path.Ext(file) != ".yaml" || dir == common:
			return nil
		}
		return m.into.listed(cs, dir, entry, true)
	}
	return nil
}

// usedIn returns the layouts with a cluster of an environment. first tells whether a management cluster has none of these clusters.
func (r *Repo) usedIn(m *v1alpha1.ManagementCluster, environment string) (used map[layout.Layout]bool, first bool, err error) {
	places, err := r.places("")
	used, first = map[layout.Layout]bool{}, true
	for _, p := range places {
		if p.environment == environment && r.exists(p.file) {
			used[p.at] = true
			first = first && p.mgmt != m
		}
	}
	return used, first, err
}

// sharedElsewhere returns the layout of another management cluster whose clusters share files of an environment. It prefers one that has
// clusters of the environment, then one of the same cloud, then a home.
func (r *Repo) sharedElsewhere(
	m *v1alpha1.ManagementCluster, at layout.Layout, environment string, used map[layout.Layout]bool,
) (from layout.Layout, found bool) {
	best := 0
	for i := range r.Fleet.Spec.ManagementClusters {
		other := &r.Fleet.Spec.ManagementClusters[i]
		for _, l := range r.Fleet.Layouts(other) {
			if other == m || !r.exists(l.Cluster(environment, layout.CommonDir)) {
				continue
			}
			rank := 1
			for weight, holds := range map[int]bool{8: used[l], 4: l.Cloud == at.Cloud, 2: l.IsHome()} {
				if holds {
					rank += weight
				}
			}
			if rank > best {
				from, found, best = l, true, rank
			}
		}
	}
	return from, found
}
