package status

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// resumeHint says what to do about a suspended object. During a hand-over, this is to finish or to undo the hand-over: an object that
// somebody resumes in the midst of it would change what is being handed over.
func (c *collector) resumeHint(o *Object) string {
	switch {
	case c.underWay != nil && !o.SuspendedInGit:
		return diag.Hint(c.underWay)
	case o.SuspendedInGit:
	case o.byFleetctl:
		return "`fleetctl init`"
	case o.letGo:
		return "finish or undo the command that has suspended it: `fleetctl cluster transfer`, `detach`, `drain` or `remove`; after a " +
			"detach, `fleetctl cluster remove` removes the cluster from Git, too"
	}
	command := c.report.resumeCommand(o)
	switch {
	case command == "" && o.SuspendedInGit:
		return "remove `suspend: true` from it in Git"
	case command == "":
		return "`" + flux.ResumeCommand(o.Kind, kube.Key{Namespace: o.Namespace, Name: o.Name}) + "` resumes it"
	case o.SuspendedInGit && o.Kind == kindSource && o.Name == flux.Name:
		// Flux does not fetch the commit that would resume its own source.
		return "remove `suspend: true` from it in Git; then `" + command + " --now` lets Flux see that"
	case o.SuspendedInGit:
		return "`" + command + "` resumes it"
	}
	return "`" + command + " --now` resumes it"
}

// The kinds of Flux that a command of fleetctl resumes.
const (
	kindSource    = "GitRepository"
	kindApplied   = "Kustomization"
	kindInstalled = "HelmRelease"
)

// resumeCommand returns the command that resumes an object of the management cluster's Flux by what fleetctl calls it; "" if there is none.
func (r *Report) resumeCommand(o *Object) string {
	feature, isFeature := strings.CutPrefix(o.Name, "feature-")
	clusters, appliesClusters := strings.CutPrefix(o.Name, "clusters-")
	in := func(w Fleet) bool { return w.Namespace == o.Namespace && w.Name == o.Name }
	switch {
	case o.Kind == kindInstalled && slices.ContainsFunc(r.Clusters, in):
		return diag.ShellCommand("fleetctl", "cluster", "resume", o.Name)
	case o.Kind == kindApplied && isFeature:
		words := []string{"fleetctl", "feature", "resume", strings.TrimSuffix(feature, "-non-namespaced")}
		if o.Namespace == flux.Namespace { // else it is of a workload cluster, which may have it of its environment
			words = append(words, "--on-management="+r.Cluster.Name)
		}
		return diag.ShellCommand(words...)
	case o.Namespace != flux.Namespace:
		return ""
	case o.Kind == kindApplied && appliesClusters:
		environment, _, _ := strings.Cut(clusters, ".") // the rest is a cloud
		return diag.ShellCommand("fleetctl", "environment", "resume", environment)
	case o.Kind == kindSource && o.Name == flux.Name:
		return diag.ShellCommand("fleetctl", "channel", "resume", v1alpha1.MainChannel)
	case o.Kind == kindSource:
		return diag.ShellCommand("fleetctl", "channel", "resume", o.Name)
	}
	return ""
}
