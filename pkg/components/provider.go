package components

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// AddProvider returns the edit that adds a provider to a management cluster. It refuses a provider that init could not find, with an error
// that matches capi.ErrUnknownProvider. It finds a provider for which fleet.yaml has a url at this url.
func AddProvider(cluster string, p v1alpha1.Provider) func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		wanted := releases.Provider{Name: p.Name, Type: releases.ProviderType(p.Type), Version: p.Version, URL: p.URL}
		if m, err := r.Fleet.ManagementCluster(cluster); err != nil {
			// To ask for the management cluster of a mistyped provider would mislead.
			if err := CheckFor(r, p); err != nil {
				return nil, err
			}
		} else {
			for _, there := range m.Providers {
				if there.Name == p.Name && fleetrepo.TypeOf(there) == fleetrepo.TypeOf(p) {
					wanted.URL = there.URL
				}
			}
		}
		e, err := r.AddProvider(cluster, p) // what is wrong with the words comes first
		if err == nil {
			err = known(wanted)
		}
		return e, err
	}
}

// AddManagementCluster returns the edit that declares a management cluster. A provider that init could not find is refused as AddProvider
// refuses it.
func AddManagementCluster(m v1alpha1.ManagementCluster) func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		if !slices.Contains(r.ManagementClusterNames(), m.Name) { // what is declared already needs no second look
			for _, p := range m.Providers { // a mistyped name comes before what else is missing
				of := releases.ProviderType(fleetrepo.TypeOf(p))
				if err := known(releases.Provider{Name: p.Name, Type: of, Version: p.Version, URL: p.URL}); err != nil {
					return nil, err
				}
			}
		}
		return r.AddManagementCluster(m)
	}
}

// CheckFor returns the error of AddProvider for the first of these providers that init could find on no management cluster of the fleet:
// clusterctl does not know it, and fleet.yaml has no url for it anywhere.
func CheckFor(r *fleetrepo.Repo, providers ...v1alpha1.Provider) error {
	for _, p := range providers {
		if slices.ContainsFunc(r.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
			return slices.ContainsFunc(m.Providers, func(there v1alpha1.Provider) bool {
				return there.URL != "" && there.Name == p.Name && fleetrepo.TypeOf(there) == fleetrepo.TypeOf(p)
			})
		}) {
			continue
		}
		of := releases.ProviderType(fleetrepo.TypeOf(p))
		if err := known(releases.Provider{Name: p.Name, Type: of, Version: p.Version, URL: p.URL}); err != nil {
			return err
		}
	}
	return nil
}

// KnownProviders are the names of the providers of a type that are found by their name alone, for completion.
func KnownProviders(of v1alpha1.ProviderType) []string {
	known, err := releases.Known()
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range known {
		if p.Type == releases.ProviderType(of) {
			names = append(names, p.Name)
		}
	}
	return names
}

// KnownVersions are the versions of a provider that this fleetctl itself knows, for completion: Cluster API releases its own providers
// together with the library that fleetctl has.
func KnownVersions(name string, of v1alpha1.ProviderType) []string {
	known, err := releases.Known()
	if err != nil {
		return nil
	}
	for _, p := range known {
		if p.Name == name && p.Type == releases.ProviderType(of) && strings.Contains(p.URL, "/kubernetes-sigs/cluster-api/releases/") {
			return []string{Defaults().CAPIVersion}
		}
	}
	return nil
}

// known returns a usage error, which matches capi.ErrUnknownProvider, for a provider that a command line names and init could not find.
func known(p releases.Provider) error {
	if err := releases.CheckKnown(p); err != nil {
		return &diag.Error{Err: err, Code: diag.ExitUsage}
	}
	return nil
}
