package fleetrepo

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// notDeclared is the error for a cluster whose folder is there, and whose file is missing or cannot be read. It is nil for a cluster
// without a folder.
func (r *Repo) notDeclared(environment, name string) error {
	places, err := r.places("")
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.name() != name || environment != "" && p.environment != environment {
			continue
		}
		if _, err := r.read(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return findingsOf(p.file, diag.Wrap("", err, "put a regular file in its place, which you can read"))
		}
		return diag.Usage("declare the cluster in this file: it has another name, is deleted, or was never written",
			"cluster %s has a folder, and no file %s", name, p.file)
	}
	return nil
}

// FormerManagers returns the management clusters that may still have a cluster, NAME or ENVIRONMENT/NAME, that the repo no longer declares:
// all that have no other cluster of that name. There are none if the repo still has a folder for the cluster.
func (r *Repo) FormerManagers(given string) []string {
	environment, name, qualified := strings.Cut(given, "/")
	if !qualified {
		environment, name = "", given
	}
	places, err := r.places("")
	if err != nil {
		return nil
	}
	managers := slices.Clone(r.ManagementClusterNames())
	for _, p := range places {
		if p.name() != name {
			continue
		}
		if environment == "" || p.environment == environment {
			return nil
		}
		managers = slices.DeleteFunc(managers, func(manager string) bool { return manager == p.mgmt.Name })
	}
	return managers
}

// UnknownClusterError says that no cluster of the layout has a name. The repo may have such a cluster as objects of Cluster API, which only
// a rendered repo tells.
type UnknownClusterError struct {
	// Name is the name as it was given.
	Name string
	err  error
}

func (e *UnknownClusterError) Error() string { return e.err.Error() }

// Unwrap returns the error with the remedy.
func (e *UnknownClusterError) Unwrap() error { return e.err }
