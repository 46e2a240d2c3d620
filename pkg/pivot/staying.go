package pivot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// tellStaying warns about the credentials that stay on the target, one line for each provider. The source often has those of a person or
// of a pipeline, and the target keeps them for good. It leaves out what withdraw takes off, or tells of itself.
func (p *Move) tellStaying(ctx context.Context, target *Target, v *resolve.Versions) {
	record, err := credentials.Read(ctx, target.client)
	if err != nil {
		p.session.Deps.Report.Warn(untoldStaying(target.Name, err))
		return
	}
	for _, provider := range v.Providers {
		if provider.Type != releases.Infrastructure {
			continue
		}
		held := record.Held(provider.Label(), func(variable string) bool { return replaceableOf(provider.Name, variable) != nil })
		if len(held) > 0 {
			p.session.Deps.Report.Warn(staying(target.Name, provider.Name, held))
		}
	}
}

// TellStaying warns about the credentials of providers that stay on the management cluster called name, which stands alone from now on. Its
// parent often had those of a person or of a pipeline. Nothing takes them off, so the warnings also name those that the cluster may do
// without.
func TellStaying(ctx context.Context, client *kube.Client, name string, warn func(text string)) {
	record, err := credentials.Read(ctx, client)
	if err != nil {
		warn(untoldStaying(name, err))
		return
	}
	for _, label := range slices.Sorted(maps.Keys(record.Providers)) {
		provider, infrastructure := strings.CutPrefix(label, string(releases.Infrastructure)+"-")
		if !infrastructure {
			continue
		}
		if held := record.Held(label, hasNone(record, provider)); len(held) > 0 {
			warn(staying(name, provider, held))
		}
	}
}

// hasNone returns a function that tells whether the recorded value of an infrastructure provider's variable is that of no credential.
func hasNone(record *credentials.Record, provider string) func(variable string) bool {
	return func(variable string) bool {
		r := replaceableOf(provider, variable)
		if r == nil {
			return false
		}
		changed, _ := record.Changed(string(releases.Infrastructure)+"-"+provider, map[string]string{variable: r.None})
		return len(changed) == 0
	}
}

// tellGiven warns about the credentials of providers on a target whose hand-over is undone. The hand-over may have given them, and nothing
// takes them off: the target may have had providers of its own before.
func tellGiven(ctx context.Context, client *kube.Client, target string, warn func(text string)) {
	record, err := credentials.Read(ctx, client)
	if err != nil {
		warn(untoldStaying(target, err))
		return
	}
	for _, label := range slices.Sorted(maps.Keys(record.Providers)) {
		provider, infrastructure := strings.CutPrefix(label, string(releases.Infrastructure)+"-")
		if !infrastructure {
			continue
		}
		if held := record.Held(label, hasNone(record, provider)); len(held) > 0 {
			warn(fmt.Sprintf("the hand-over is undone, and the provider %s on %s still has credentials (%s). If the pivot gave it those of a "+
				"person or a pipeline, and no other pivot follows, end them in the cloud, or remove the provider from %s",
				provider, target, plain.Names(held, mostNamed), target))
		}
	}
}

func replaceableOf(provider, variable string) *credentials.Replaceable {
	for _, r := range credentials.AllReplaceable() {
		if r.Provider == provider && r.Variable == variable {
			return &r
		}
	}
	return nil
}

func untoldStaying(target string, err error) string {
	return fmt.Sprintf("cannot tell which credentials stay on %s: %v", target, err)
}

// staying is the warning about the credentials of a provider that stay on the target.
func staying(target, provider string, variables []string) string {
	why := credentials.WhyStays(provider)
	var without strings.Builder
	for _, variable := range variables {
		if r := replaceableOf(provider, variable); r != nil {
			why = "only a pivot takes them off, and this was none"
			fmt.Fprintf(&without, ", or give %s `value: %s` if the role of the machines of %s has the rights", variable, r.None, target)
		}
	}
	return fmt.Sprintf("the credentials of the provider %s stay on %s (%s): %s. If they are a person's or a pipeline's, have fleet.yaml name "+
		"the source of ones for this cluster alone%s, and run `fleetctl init`; then end the old ones in the cloud",
		provider, target, plain.Names(variables, mostNamed), why, without.String())
}
