package cmd

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// workload is a workload cluster that a command line names.
type workload struct {
	// name is NAME or NAMESPACE/NAME: what the management cluster knows the cluster by.
	name string
	// declared is the cluster in the fleet repo; nil if the fleet repo does not declare it, is missing, or cannot be read.
	declared *fleetrepo.Cluster
}

// key is the Cluster object of a declared workload.
func (w *workload) key() kube.Key {
	return kube.Key{Namespace: cmp.Or(w.declared.Namespace, w.declared.Name), Name: w.declared.Name}
}

// management is the management cluster to ask: the one of --management, else the one for which the fleet repo declares the cluster, else
// "".
func (w *workload) management(f *factory) string {
	if f.flags.management == "" && w.declared != nil {
		return w.declared.ManagementCluster
	}
	return f.flags.management
}

// target finds the management cluster to ask, with a function such as management.FindDeclared.
func (w *workload) target(
	f *factory, find func(store state.Store, name, dir string) (*management.Target, error),
) (*management.Target, error) {
	dir, err := f.repoDir()
	if err != nil {
		return nil, err
	}
	name := w.management(f)
	return find(f.store().For(name), name, dir)
}

// findWorkload finds the cluster that a command line names in the fleet repo, by NAME, NAMESPACE/NAME or ENVIRONMENT/NAME. A cluster need
// not be declared, because commands can also look at one that only runs. Only with several management clusters to choose from does
// findWorkload look among the clusters of plain manifests too, because that renders the repo. An error means that several declared clusters
// have the name, and that no flag tells which one is meant.
func (f *factory) findWorkload(name string) (workload, error) {
	w := workload{name: name}
	repo, err := f.fleetRepo()
	if err != nil {
		return w, nil //nolint:nilerr // what only runs can be looked at without it
	}
	qualifier, plain, qualified := strings.Cut(name, "/")
	if qualified && qualifier == plain { // the namespace of a cluster of a chart is its name
		name = plain
	}
	c, err := repo.Cluster(name)
	_, unknown := errors.AsType[*fleetrepo.UnknownClusterError](err)
	switch {
	case err == nil:
		w.declared = c
		if qualified {
			key := w.key()
			w.name = key.String()
		}
	case f.flags.nameOne() || len(repo.ManagementClusterNames()) < 2: // whoever is asked tells
	case diag.Code(err) == diag.ExitUsage && !unknown && !qualified && slices.Contains(repo.Names(), name):
		return w, err
	default:
		if c, err := f.manifestCluster(f.command.Context(), repo, w.name, err); err == nil {
			w.declared = c
		}
	}
	return w, nil
}
