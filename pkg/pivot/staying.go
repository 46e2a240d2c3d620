package pivot

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// tellStaying warns about the credentials that stay on the target, one line for each provider. The source often has those of a person or
// of a pipeline, and the target keeps them for good. It leaves out what withdraw takes off, or tells of itself.
func (p *Move) tellStaying(ctx context.Context, target *Target, v *resolve.Versions) {
	record, err := credentials.Read(ctx, target.client)
	if err != nil {
		p.session.Deps.Report.Warn(fmt.Sprintf("cannot tell which credentials stay on %s: %v", target.Name, err))
		return
	}
	for _, provider := range v.Providers {
		if provider.Type != releases.Infrastructure {
			continue
		}
		held := record.Held(provider.Label(), func(variable string) bool {
			return slices.ContainsFunc(credentials.AllReplaceable(), func(r credentials.Replaceable) bool {
				return r.Provider == provider.Name && r.Variable == variable
			})
		})
		if len(held) > 0 {
			p.session.Deps.Report.Warn(staying(target.Name, provider.Name, held))
		}
	}
}

// staying is the warning about the credentials of a provider that stay on the target.
func staying(target, provider string, variables []string) string {
	return fmt.Sprintf("the credentials of the provider %s stay on %s (%s): %s. If they are a person's or a pipeline's, have fleet.yaml name "+
		"the source of ones for this cluster alone, and run `fleetctl init`; then end the old ones in the cloud",
		provider, target, plain.Names(variables, mostNamed), credentials.WhyStays(provider))
}
