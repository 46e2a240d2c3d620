package fleetrepo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// flagsOf are the flags of lists in fleet.yaml that are not called as their field.
var flagsOf = map[string]string{
	"environments": "environment", "managementClusters": "on-management", "providers": "provider",
	"host": "host", "host.type": "host", "host.existing": "host-context", "host.existing.context": "host-context",
	"kubernetesVersion": "kubernetes-version",
}

// inFlags says what is wrong with the item at a place of fleet.yaml that a command writes, such as spec.channels[0], in the words of its
// flags: the line is one that nobody has. hints are for its fields, "" for the item, and go before what is said of the file. Other errors
// stay as they are.
func inFlags(err error, at string, hints map[string]string) error {
	findings, _ := errors.AsType[diag.Findings](err)
	if said := itemInFlags(findings, at, hints); said != nil {
		return said
	}
	return err
}

// itemInFlags is what inFlags says of an item; nil where nothing is wrong with it.
func itemInFlags(findings diag.Findings, at string, hints map[string]string) error {
	for _, f := range findings {
		rest, ok := strings.CutPrefix(f.Summary, at)
		if !ok || f.Severity != diag.SeverityError {
			continue
		}
		field, what, ok := strings.Cut(rest, ": ")
		if !ok || field != "" && field[0] != '.' {
			continue
		}
		field, _, _ = strings.Cut(strings.TrimPrefix(field, "."), "[")
		hint := cmp.Or(hints[field], f.Hint)
		if field == "" || field == "name" || f.Rule == v1alpha1.RuleProduction { // which speaks of the environment
			return diag.Usage(hint, "%s", what)
		}
		return diag.Usage(hint, "--%s: %s", cmp.Or(flagsOf[field], field), what)
	}
	return nil
}

// refusedChannel is err, why fleet.yaml cannot have a new channel, in the words of `fleetctl channel add`: production that would follow a
// branch, too.
func (r *Repo) refusedChannel(err error, c v1alpha1.Channel) error {
	findings, _ := errors.AsType[diag.Findings](err)
	isProduction := func(f diag.Finding) bool { return f.Rule == v1alpha1.RuleProduction }
	for i, name := range r.EnvironmentNames() {
		if at := fmt.Sprintf("spec.environments[%d].channel", i); slices.ContainsFunc(findings, isProduction) {
			hint := fmt.Sprintf(
				"production follows tags alone: leave %s out, or say that it is none with `fleetctl environment set %s --production=false`", name, name)
			if said := itemInFlags(findings, at, map[string]string{"": hint}); said != nil {
				return said
			}
		}
	}
	for _, other := range r.Fleet.Channels() {
		if c.Tag != "" && other.Tag == c.Tag && other.Name != c.Name {
			return diag.Usage(fmt.Sprintf("give it tags of its own: --tag '%s-*', or --branch", c.Name),
				"channel %s has the tags %s already", other.Name, c.Tag)
		}
	}
	return inFlags(err, fmt.Sprintf("spec.channels[%d]", len(r.Fleet.Spec.Channels)), map[string]string{
		"tag": "give v*, or another beginning with a * in the place of the version",
	})
}

// refusedManagementCluster is err, why fleet.yaml cannot have a new management cluster, in the words of `fleetctl management add`.
func (r *Repo) refusedManagementCluster(err error) error {
	return inFlags(err, fmt.Sprintf("spec.managementClusters[%d]", len(r.Fleet.Spec.ManagementClusters)), map[string]string{
		"": "give another --generation or --cloud", "host.existing": "give the context of your kubeconfig that reaches the cluster",
	})
}

// refusedProvider is err, why fleet.yaml cannot have a provider so, in the words of `fleetctl provider add`.
func (r *Repo) refusedProvider(err error, m *v1alpha1.ManagementCluster, p v1alpha1.Provider) error {
	at := indexOf(m, p)
	if at < 0 {
		at = len(m.Providers)
	}
	cluster := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	item := fmt.Sprintf("spec.managementClusters[%d].providers[%d]", cluster, at)
	findings, _ := errors.AsType[diag.Findings](err)
	for _, f := range findings { // the version stands behind the name, and has no flag
		if what, ok := strings.CutPrefix(f.Summary, item+".version: "); ok && f.Severity == diag.SeverityError {
			return diag.Usage(f.Hint, "the version of provider %s: %s", p.Name, what)
		}
	}
	return inFlags(err, item, nil)
}

// refusedEnvironment is err, why fleet.yaml cannot have an environment so, in the words of `fleetctl environment`.
func (r *Repo) refusedEnvironment(err error, name string) error {
	at := slices.Index(r.EnvironmentNames(), name)
	if at < 0 {
		at = len(r.EnvironmentNames())
	}
	tags := "NAME"
	for _, c := range r.Fleet.Channels() {
		if c.IsTag() {
			tags = c.Name
			break
		}
	}
	return inFlags(err, fmt.Sprintf("spec.environments[%d]", at),
		map[string]string{"channel": "give --channel " + tags + ", or --production=false"})
}
