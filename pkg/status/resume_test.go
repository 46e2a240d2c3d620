package status

import (
	"slices"
	"testing"
)

// Each suspended object gets the command that resumes this object. Those that fleetctl has no command for get one of kubectl.
func TestResumeHintNamesTheCommand(t *testing.T) {
	c := &collector{report: &Report{Cluster: Cluster{Name: "mgmt"}, Clusters: []Fleet{{Namespace: "shop", Name: "shop"}}}}
	for object, want := range map[Object]string{
		{Kind: "HelmRelease", Namespace: "shop", Name: "shop"}:                                "`fleetctl cluster resume shop --now` resumes it",
		{Kind: "HelmRelease", Namespace: "shop", Name: "shop", SuspendedInGit: true}:          "`fleetctl cluster resume shop` resumes it",
		{Kind: "Kustomization", Namespace: "flux-system", Name: "clusters-dev"}:               "`fleetctl environment resume dev --now` resumes it",
		{Kind: "Kustomization", Namespace: "flux-system", Name: "clusters-dev.aws"}:           "`fleetctl environment resume dev --now` resumes it",
		{Kind: "Kustomization", Namespace: "shop", Name: "feature-web"}:                       "`fleetctl feature resume web --now` resumes it",
		{Kind: "GitRepository", Namespace: "flux-system", Name: "next"}:                       "`fleetctl channel resume next --now` resumes it",
		{Kind: "GitRepository", Namespace: "flux-system", Name: "next", SuspendedInGit: true}: "`fleetctl channel resume next` resumes it",
		{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}:                "`fleetctl channel resume main --now` resumes it",
		{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system", SuspendedInGit: true}: "remove `suspend: true` from it in Git; then " +
			"`fleetctl channel resume main --now` lets Flux see that",
		{Kind: "Kustomization", Namespace: "flux-system", Name: "feature-web-non-namespaced", SuspendedInGit: true}: "`fleetctl feature resume " +
			"web --on-management=mgmt` resumes it",
		{Kind: "Kustomization", Namespace: "flux-system", Name: "flux-system"}: "`kubectl -n flux-system patch kustomization flux-system --type " +
			"merge -p '{\"spec\":{\"suspend\":false}}'` resumes it",
		{Kind: "HelmRelease", Namespace: "web", Name: "web"}: "`kubectl -n web patch helmrelease web --type merge -p " +
			"'{\"spec\":{\"suspend\":false}}'` resumes it",
		{Kind: "HelmRelease", Namespace: "web", Name: "web", SuspendedInGit: true}:      "remove `suspend: true` from it in Git",
		{Kind: "Kustomization", Namespace: "a", Name: "clusters-dev", byFleetctl: true}: "`fleetctl init`",
	} {
		if got := c.resumeHint(&object); got != want {
			t.Errorf("%s %s/%s, in Git %t: got %q, want %q", object.Kind, object.Namespace, object.Name, object.SuspendedInGit, got, want)
		}
	}
}

// A provider or a controller of Flux that does not run gets a hint where its log is.
func TestWhatDoesNotRunHasAHint(t *testing.T) {
	for _, tc := range []struct{ host, pivotedTo, deployment, want string }{
		{"embedded", "", "capi-controller-manager", "`fleetctl host logs ns/capi-controller-manager` shows its log"},
		{"embedded", "platform", "capi-controller-manager", "`fleetctl support-bundle` gathers its log and its events"},
		{"kind", "", "capi-controller-manager", "`fleetctl support-bundle` gathers its log and its events"},
		{"embedded", "", "", "`fleetctl init` installs what is missing"},
	} {
		item := []Item{{Name: "core", Namespace: "ns", Reason: "crash", deployment: tc.deployment}}
		c := &collector{report: &Report{
			Cluster: Cluster{Host: tc.host, PivotedTo: tc.pivotedTo}, Providers: item, Flux: Flux{Installed: true, Controllers: item},
		}}
		c.judgeInstalled()
		for _, object := range []string{" provider core", "Flux's core"} {
			i := slices.IndexFunc(c.report.Problems, func(p Problem) bool { return p.Object == object })
			if i < 0 || c.report.Problems[i].Hint != tc.want {
				t.Errorf("%s of %+v: %+v, want %q", object, tc, c.report.Problems, tc.want)
			}
		}
	}
}
