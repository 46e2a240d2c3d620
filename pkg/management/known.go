package management

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// CheckName returns an error if neither the fleet repo around dir nor this machine knows a management cluster or a standby of that name.
// The hint of the error has the names to choose from. CheckName accepts every name where nothing could know it: in no fleet repo, in one
// that declares no management cluster, and with the access to a management cluster on the command line. It leaves it to the command to
// report a fleet.yaml that it cannot read, and a name that is a path.
func CheckName(store state.Store, name, dir string) error {
	if name == "" || name != filepath.Base(name) || store.Given != nil {
		return nil
	}
	repo, err := ownership.RepoAt(dir)
	if err != nil || repo == nil {
		return nil //nolint:nilerr // the command reports it
	}
	declared := slices.Concat(repo.Clusters, repo.Elsewhere, repo.Standbys)
	if len(declared) == 0 || slices.Contains(declared, name) || hasState(store, name) {
		return nil
	}
	return v1alpha1.UnknownManagementCluster(name, declared)
}

// hasState tells whether this machine has anything of a management cluster of that name, even if an interrupted command has left it.
func hasState(store state.Store, name string) bool {
	_, err := os.Stat(store.Cluster(name).Dir)
	return !errors.Is(err, fs.ErrNotExist)
}

// CheckKnown returns an error for a target without a host if this machine remembers other management clusters, and nothing knows this one.
// Its name is then a mistyped one, and to have nothing to do would be no success.
func (t *Target) CheckKnown() error {
	if t.Known() || t.repo != nil || hasState(t.store, t.Name) {
		return nil
	}
	records, damaged, err := t.store.All()
	if err != nil || len(records)+len(damaged) == 0 {
		return err
	}
	names := slices.Collect(maps.Keys(damaged))
	for i := range records {
		names = append(names, records[i].Name)
	}
	slices.Sort(names)
	return v1alpha1.UnknownManagementCluster(t.Name, names)
}

// OfFleet tells whether the fleet repo that the target was found in declares a management cluster of this name, with its own repository or
// without.
func (t *Target) OfFleet(name string) bool {
	return t.repo != nil && (slices.Contains(t.repo.Clusters, name) || slices.Contains(t.repo.Elsewhere, name))
}
