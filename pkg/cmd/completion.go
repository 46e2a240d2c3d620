package cmd

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/checkup"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// completions are the completions of flags that mean the same on every command, by their name, and of flags of one command, by "COMMAND
// --FLAG". A command that registers a completion itself keeps it.
func (f *factory) completions() map[string]cobra.CompletionFunc {
	anyArguments := func(complete cobra.CompletionFunc) cobra.CompletionFunc {
		return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return complete(c, nil, toComplete)
		}
	}
	workload := anyArguments(f.completeWorkloadClusters)
	return map[string]cobra.CompletionFunc{
		"kubernetes-version":        f.completeVersions,
		"cluster add --version":     f.completeVersions,
		"cluster upgrade --version": f.completeVersions,
		"provider":                  f.completeInfrastructure,
		"context":                   completeContexts,
		"host-context":              completeContexts,
		"arch":                      cobra.FixedCompletions([]string{"amd64", "arm64"}, cobra.ShellCompDirectiveNoFileComp),
		"skip-preflight":            completeChecks,
		"drill --skip-preflight":    cobra.FixedCompletions([]string{checkup.Downloads}, cobra.ShellCompDirectiveNoFileComp),
		"abandon":                   workload,
		"pivot-to":                  workload,
		"pivot --to":                workload,
		"orphans --delete":          workload,
		"orphans --gone":            anyArguments(f.completeManagementClusters),
		"bootstrap --environment":   f.completeFrom(-1, environmentNames),
	}
}

// addCompletions registers the completions for all commands of the tree.
func (f *factory) addCompletions(root *cobra.Command) {
	completions := f.completions()
	var add func(c *cobra.Command)
	add = func(c *cobra.Command) {
		command := strings.TrimPrefix(c.CommandPath(), root.Name()+" ")
		c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			complete := completions[command+" --"+flag.Name]
			if complete == nil {
				complete = completions[flag.Name]
			}
			if complete != nil {
				_ = c.RegisterFlagCompletionFunc(flag.Name, complete) // fails only if the command has registered its own
			}
		})
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(root)
}

// completeVersions completes a version of Kubernetes: one of those that fleetctl and the fleet know, and none before the version of the
// cluster in the first argument.
func (f *factory) completeVersions(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	known := hosts.KubernetesVersions()
	repo, err := f.fleetRepo()
	if err != nil {
		return fleetrepo.VersionsInOrder(known), cobra.ShellCompDirectiveNoFileComp
	}
	return repo.VersionsToOffer(strings.Join(args[:min(1, len(args))], ""), known...), cobra.ShellCompDirectiveNoFileComp
}

// completeInfrastructure completes infrastructure providers, several with commas between them.
func (f *factory) completeInfrastructure(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return f.providersFor(toComplete, v1alpha1.ProviderInfrastructure), cobra.ShellCompDirectiveNoFileComp
}

// providersFor returns what completes NAME or NAME:VERSION of a provider: names, or after the colon the versions that fleet.yaml,
// fleet.lock and fleetctl know of this provider. What stands before a last comma stays.
func (f *factory) providersFor(toComplete string, of v1alpha1.ProviderType) []string {
	before, last := "", toComplete
	if i := strings.LastIndexByte(toComplete, ','); i >= 0 {
		before, last = toComplete[:i+1], toComplete[i+1:]
	}
	name, _, versioned := strings.Cut(last, ":")
	choices := components.KnownProviders(of)
	if versioned {
		choices = components.KnownVersions(name, of)
		if repo, err := f.fleetRepo(); err == nil {
			choices = repo.ProviderVersionsToOffer(name, of, choices...)
		}
		before += name + ":"
	}
	out := make([]string, 0, len(choices))
	for _, choice := range choices {
		out = append(out, before+choice)
	}
	return out
}

// completeChecks completes the name of a preflight check.
func completeChecks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return checkup.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completeContexts completes the name of a context of the kubeconfig that the command's flags name, or of the one that kubectl would use.
func completeContexts(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	file := ""
	for _, name := range []string{"kubeconfig", "host-kubeconfig"} {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Changed {
			file = flag.Value.String()
		}
	}
	return kube.Contexts(file), cobra.ShellCompDirectiveNoFileComp
}
