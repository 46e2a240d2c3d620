package validate

import (
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkProviders reports providers of fleet.yaml that `fleetctl init` and `fleetctl provider add` refuse: clusterctl does not know the
// name, and fleet.yaml has no url for it. The source of the rule is releases.CheckKnown.
func (r *run) checkProviders() diag.Findings {
	if r.assumed {
		return nil
	}
	var out diag.Findings
	for i := range r.fleet.Spec.ManagementClusters {
		for j, p := range components.DeclaredProviders(r.fleet.Spec.ManagementClusters[i].Providers) {
			if err := releases.CheckKnown(p); err != nil {
				out = append(out, r.fleetFinding(RuleValue, fmt.Sprintf("spec.managementClusters[%d].providers[%d].name", i, j),
					err.Error(), diag.Hint(err)))
			}
		}
	}
	return out
}

// isKnown tells whether a provider is one that checkProviders does not report.
func isKnown(p v1alpha1.LockedComponent) bool {
	return releases.CheckKnown(releases.Provider{Name: p.Name, Type: releases.ProviderType(p.Type), URL: p.URL}) == nil
}
