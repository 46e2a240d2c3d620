package status

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// A report about an earlier commit than the newest is not Ready: the newest may declare a cluster that does not exist yet.
func TestBehind(t *testing.T) {
	const old, head = "ae3ffc8b00000000000000000000000000000000", "23cdedbf00000000000000000000000000000000"
	served, notServed := true, false
	for _, tt := range []struct {
		name              string
		served            *bool
		branch            string
		source, applied   string
		suspended, behind bool
	}{
		{name: "applied", served: &served, branch: "main", source: "main@sha1:" + head, applied: "main@sha1:" + head},
		{name: "not fetched", served: &served, branch: "main", source: "main@sha1:" + old, applied: "main@sha1:" + old, behind: true},
		{name: "not applied", served: &served, branch: "main", source: "main@sha1:" + head, applied: "main@sha1:" + old, behind: true},
		{name: "another branch is checked out", served: &served, branch: "shop", source: "main@sha1:" + old, applied: "main@sha1:" + old},
		{name: "a remote", branch: "main", source: "main@sha1:" + old, applied: "main@sha1:" + old},
		{name: "not served", served: &notServed, branch: "main", source: "main@sha1:" + old, applied: "main@sha1:" + old},
		{name: "suspended", served: &served, branch: "main", source: "main@sha1:" + old, applied: "main@sha1:" + old, suspended: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Report{Ready: true, Git: Git{Branch: tt.branch, Revision: head, Served: tt.served}}
			object := func(kind, name, revision string) Object {
				return Object{
					Kind: kind, Namespace: flux.Namespace, Name: name, Revision: revision, Ready: true, Suspended: tt.suspended,
				}
			}
			r.Flux.Sources = []Object{object("GitRepository", flux.Name, tt.source), object("GitRepository", "tenant", "main@sha1:"+old)}
			r.Flux.Applied = []Object{object("Kustomization", flux.Name, tt.applied)}
			(&collector{report: r}).judgeBehind()
			if r.Ready == tt.behind || len(r.Problems) > 1 {
				t.Fatalf("ready %v, problems %v", r.Ready, r.Problems)
			}
			if tt.behind && !strings.Contains(r.Problems[0].Reason, "main@sha1:ae3ffc8b, and not yet 23cdedbf") {
				t.Errorf("it says %q", r.Problems[0].Reason)
			}
		})
	}
}

// What to do about an object that is at another revision than its source is the hint of the problem.
func TestBehindHint(t *testing.T) {
	late := Object{
		Kind: "Kustomization", Namespace: "east", Name: "east-flux", Reason: "it has not applied v0.1.0 yet", behind: "make it look",
	}
	ofWorkload := late
	ofWorkload.workload = "components"
	for name, o := range map[string]Object{"an object of the management cluster": late, "a part of a cluster's Flux": ofWorkload} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Ready: true, Cluster: Cluster{Name: "mgmt"}}
			r.Flux.Installed, r.Flux.Applied = true, []Object{o}
			r.Providers = []Item{{Name: "docker", Ready: true}}
			r.Clusters = []Fleet{{Namespace: "east", Name: "east", Available: true}}
			c := &collector{report: r, from: Sources{Client: &kube.Client{}}}
			c.judge()
			if r.Ready || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Reason, late.Reason) ||
				r.Problems[0].Hint != late.behind {
				t.Errorf("ready %v, problems %+v", r.Ready, r.Problems)
			}
		})
	}
}
