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

// flagsOf names the flags whose names differ from those of their lists in fleet.yaml.
var flagsOf = map[string]string{
	"environments": "environment", "managementClusters": "on-management", "providers": "provider",
	"host": "host", "host.type": "host", "host.existing": "host-context", "host.existing.context": "host-context",
	"kubernetesVersion": "kubernetes-version",
}

// inFlags translates an error about an item that a command writes, at a place of fleet.yaml such as spec.channels[0],
// into the words of the command's flags, because nobody has written that line. hints are for the item's fields, and
// with the key "" for the item. They come before the hints about the file. Other errors stay as they are.
func inFlags(err error, at string, hints map[string]string) error {
	findings, _ := errors.AsType[diag.Findings](err)
	if said := itemInFlags(findings, at, hints); said != nil {
		return said
	}
	return err
}

// itemInFlags returns the errors about the item; nil if there are none.
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
		if field == "" || field == "name" || f.Rule == v1alpha1.RuleProduction { // the message names the environment
			return diag.Usage(hint, "%s", what)
		}
		return diag.Usage(hint, "--%s: %s", cmp.Or(flagsOf[field], field), what)
	}
	return nil
}

// refusedChannel translates err, which says why fleet.yaml cannot have a new channel, into the words of `fleetctl
// channel add`. It also covers production environments that would follow a branch.
func (r *Repo) refusedChannel(err error, c v1alpha1.Channel) error {
	findings, _ := errors.AsType[diag.Findings](err)
	isProduction := func(f diag.Finding) bool { return f.Rule == v1alpha1.RuleProduction }
	for i, name := range r.EnvironmentNames() {
		if at := fmt.Sprintf("spec.environments[%d].channel", i); slices.ContainsFunc(findings, isProduction) {
			hint := fmt.Sprintf(
				"production follows only tags: leave %s out, or take production off it with `fleetctl environment set %s --production=false`",
				name, name)
			if said := itemInFlags(findings, at, map[string]string{"": hint}); said != nil {
				return said
			}
		}
	}
	for _, other := range r.Fleet.Channels() {
		if c.Tag != "" && other.Tag == c.Tag && other.Name != c.Name {
			return diag.Usage(fmt.Sprintf("give it other tags, such as --tag '%s-*', or --branch", c.Name),
				"channel %s has the tags %s already", other.Name, c.Tag)
		}
	}
	return inFlags(err, fmt.Sprintf("spec.channels[%d]", len(r.Fleet.Spec.Channels)), map[string]string{
		"tag": "give v*, or another prefix, with a * for the version",
	})
}

// refusedManagementCluster translates err, which says why fleet.yaml cannot have a new management cluster, into the
// words of `fleetctl management add`.
func (r *Repo) refusedManagementCluster(err error) error {
	return inFlags(err, fmt.Sprintf("spec.managementClusters[%d]", len(r.Fleet.Spec.ManagementClusters)), map[string]string{
		"": "give another --generation or --cloud", "host.existing": "give the context of your kubeconfig that reaches the cluster",
	})
}

// refusedProvider translates err, which says why fleet.yaml cannot have such a provider, into the words of `fleetctl
// provider add`.
func (r *Repo) refusedProvider(err error, m *v1alpha1.ManagementCluster, p v1alpha1.Provider) error {
	at := indexOf(m, p)
	if at < 0 {
		at = len(m.Providers)
	}
	cluster := slices.IndexFunc(r.Fleet.Spec.ManagementClusters, func(o v1alpha1.ManagementCluster) bool { return o.Name == m.Name })
	item := fmt.Sprintf("spec.managementClusters[%d].providers[%d]", cluster, at)
	findings, _ := errors.AsType[diag.Findings](err)
	for _, f := range findings { // the version follows the name, and has no flag
		if what, ok := strings.CutPrefix(f.Summary, item+".version: "); ok && f.Severity == diag.SeverityError {
			return diag.Usage(f.Hint, "the version of provider %s: %s", p.Name, what)
		}
	}
	return inFlags(err, item, nil)
}

// refusedEnvironment translates err, which says why fleet.yaml cannot have such an environment, into the words of
// `fleetctl environment`.
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
