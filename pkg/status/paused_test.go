package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// A paused environment is one problem, however many objects it suspends, and its clusters stay Ready. What somebody has suspended besides
// is a problem of its own.
func TestPausedEnvironment(t *testing.T) {
	top := kube.Key{Namespace: flux.Namespace, Name: "clusters-dev.aws"}
	suspended := func(kind, namespace, name, workload string, with kube.Key) Object {
		return Object{
			Kind: kind, Namespace: namespace, Name: name, Suspended: true, SuspendedInGit: true,
			Reason: "its newest generation is not reconciled yet", workload: workload, pausedWith: with,
		}
	}
	clusters := Object{Kind: "Kustomization", Namespace: top.Namespace, Name: top.Name, Ready: true}
	inGit, atOnce := clusters, clusters
	inGit.pauses = true
	atOnce.Suspended = true
	for name, test := range map[string]struct {
		clusters Object
		want     []string
	}{
		"by a commit": {inGit, []string{
			"HelmRelease flux-system/other: suspended: Flux does not reconcile it, in Git",
			"Kustomization flux-system/clusters-dev.aws: environment dev is paused, in Git: it suspends 2 objects",
		}},
		"at once": {atOnce, []string{
			"HelmRelease flux-system/other: suspended: Flux does not reconcile it, in Git",
			"Kustomization flux-system/clusters-dev.aws: suspended: Flux does not reconcile it, on the cluster alone: not in Git",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Ready: true, Cluster: Cluster{Name: "mgmt"}}
			r.Providers = []Item{{Name: "docker", Ready: true}}
			r.Clusters = []Fleet{{Namespace: "east", Name: "east", Available: true}}
			r.Flux.Installed = true
			r.Flux.Sources = []Object{suspended("HelmChart", flux.Namespace, "dev-docker", "", top)}
			r.Flux.Applied = []Object{
				suspended("HelmRelease", flux.Namespace, "other", "", kube.Key{}), test.clusters,
				suspended("HelmRelease", "east", "east", "", top), suspended("Kustomization", "east", "east-flux", "components", top),
				{Kind: "Kustomization", Namespace: "east", Name: "east-sync", Ready: true, workload: "sync"},
			}
			(&collector{report: r, from: Sources{Client: &kube.Client{}}}).judge()
			var got []string
			for _, p := range r.Problems {
				got = append(got, p.Object+": "+p.Reason)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !r.Clusters[0].Ready {
				t.Errorf("the cluster is not Ready: %s", r.Clusters[0].Reason)
			}
		})
	}
}
