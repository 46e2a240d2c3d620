package why

import (
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// chain sorts the objects in the order from the commit to the running cluster, and finds the first broken one.
type chain struct {
	*look

	links []Link
	parts []partLink
}

// partLink is the link of a part of the cluster, with the part's place among the others.
type partLink struct {
	link int
	part *capi.Part
}

func (c *chain) build() {
	release := c.release()
	applied := c.applied(release)
	kustomizations := c.kustomizations(applied)
	c.commitLink(kustomizations)
	for _, s := range c.sources(kustomizations, release) {
		c.fluxLink(StageSource, s)
	}
	for _, k := range kustomizations {
		c.fluxLink(StageKustomization, k)
	}
	switch {
	case release != nil:
		c.fluxLink(StageRelease, *release)
	case c.root == nil:
		c.add(Link{Stage: StageRelease, Object: objectName("HelmRelease", c.key), State: StateAbsent})
	}
	c.controllerLinks()
	c.clusterLinks()
	c.workloadLinks()
}

func (c *chain) add(l Link) int {
	if l.Troubles == nil {
		l.Troubles = []Trouble{}
	}
	c.links = append(c.links, l)
	return len(c.links) - 1
}

// release is the HelmRelease that makes the cluster; nil if there is none.
func (c *chain) release() *flux.Object {
	wanted := c.key
	if c.root != nil {
		if wanted = flux.ReleaseOf(c.root.Unstructured); wanted.Name == "" {
			return nil
		}
	}
	return find(c.flux.HelmReleases, wanted)
}

// applied is the Kustomization that applied the release or the Cluster. If neither exists, applied is the Kustomization that should apply
// them.
func (c *chain) applied(release *flux.Object) kube.Key {
	switch {
	case release != nil && release.AppliedBy.Name != "":
		return release.AppliedBy
	case c.root != nil && flux.KustomizationOf(c.root.Unstructured).Name != "":
		return flux.KustomizationOf(c.root.Unstructured)
	}
	key := kube.Key{Namespace: flux.Namespace, Name: flux.Name}
	if d := c.from.Declared; d != nil {
		for _, k := range c.flux.Kustomizations { // the name that `fleetctl init` gives
			if k.Namespace == flux.Namespace && k.Name == d.AppliedBy {
				key.Name = k.Name
			}
		}
	}
	return key
}

// kustomizations are the Kustomizations between flux-system and the cluster, with the ones that they depend on.
func (c *chain) kustomizations(last kube.Key) []flux.Object {
	var way []flux.Object
	for next := last; next.Name != ""; {
		k := find(c.flux.Kustomizations, next)
		if k == nil || slices.ContainsFunc(way, func(o flux.Object) bool { return same(o, *k) }) {
			break
		}
		way = append(way, *k)
		for _, d := range k.DependsOn {
			on := find(c.flux.Kustomizations, d)
			if on != nil && !on.Ready && !slices.ContainsFunc(way, func(o flux.Object) bool { return same(o, *on) }) {
				way = append(way, *on)
			}
		}
		next = k.AppliedBy
	}
	slices.Reverse(way)
	return way
}

// sources are the sources of the Kustomizations and of the release.
func (c *chain) sources(kustomizations []flux.Object, release *flux.Object) []flux.Object {
	readers := kustomizations
	if release != nil {
		readers = append(slices.Clone(readers), *release)
	}
	var out []flux.Object
	for _, r := range readers {
		for _, s := range c.flux.Sources {
			if r.Source == s.Kind+"/"+s.Namespace+"/"+s.Name && !slices.ContainsFunc(out, func(o flux.Object) bool { return same(o, s) }) {
				out = append(out, s)
			}
		}
	}
	return out
}

func find(all []flux.Object, key kube.Key) *flux.Object {
	for i := range all {
		if all[i].Namespace == key.Namespace && all[i].Name == key.Name {
			return &all[i]
		}
	}
	return nil
}

func same(a, b flux.Object) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

// commitLink compares the commit on this machine with the commit that the last source has fetched of the same branch.
func (c *chain) commitLink(kustomizations []flux.Object) {
	l := Link{Stage: StageCommit, Object: "fleet repo " + c.from.Repo, State: StateOK}
	if c.from.Repo == "" || c.commit.revision == "" {
		return
	}
	l.Detail = c.commit.branch + "@" + shortCommit(c.commit.revision)
	if c.from.Declared == nil && c.root != nil {
		l.Detail += ", which does not declare the cluster"
	}
	for _, s := range c.sources(kustomizations, nil) {
		branch, fetched, ok := strings.Cut(s.Revision, "@sha1:")
		if ok && branch == c.commit.branch && fetched != c.commit.revision {
			l.Troubles = []Trouble{{
				Reason:  "Flux has fetched " + shortCommit(fetched) + " of " + branch + ", and this machine has " + shortCommit(c.commit.revision),
				Waiting: true, code: codeNotFetched,
			}}
			break
		}
	}
	l.judge()
	c.add(l)
}

// codeNotFetched is used as the reason if Flux has another commit than this machine.
const codeNotFetched = "NotFetched"

func shortCommit(s string) string { return s[:min(len(s), 8)] }

func (c *chain) fluxLink(stage Stage, o flux.Object) {
	l := Link{
		Stage: stage, Object: objectName(o.Kind, kube.Key{Namespace: o.Namespace, Name: o.Name}),
		Detail: shortRevision(o.Revision), kind: o.Kind,
	}
	if o.Suspended {
		by := "it is suspended: Flux does not reconcile it"
		if o.SuspendedByFleetctl {
			by = "it is suspended, by fleetctl: Flux does not reconcile it"
		}
		l.Troubles = append(l.Troubles, Trouble{Reason: by})
	}
	if !o.Ready {
		found := troublesOf(o.Troubles)
		if len(found) == 0 {
			found = []Trouble{{Condition: "Ready", Reason: o.Reason, Waiting: true}}
		}
		l.Troubles = append(l.Troubles, found...)
	}
	l.judge()
	c.add(l)
}

// shortRevision shortens the digest of a revision.
func shortRevision(revision string) string {
	const n = 8
	at := strings.LastIndexAny(revision, ":+") + 1
	return revision[:min(len(revision), at+n)]
}

// controllerLinks are the providers that the cluster needs and that do not run.
func (c *chain) controllerLinks() {
	broken := false
	for _, p := range c.installed {
		if p.Ready || !c.uses(p) {
			continue
		}
		broken = true
		c.add(Link{
			Stage: StageControllers, Object: string(p.Type) + " provider " + p.Name, State: StateWrong, Detail: p.Version, kind: "Deployment",
			Troubles: []Trouble{{Reason: strings.Join(strings.Fields(p.Reason), " ")}},
		})
	}
	switch {
	case len(c.installed) == 0 && !slices.ContainsFunc(c.unknown, func(u string) bool { return strings.HasPrefix(u, "providers: ") }):
		c.add(Link{
			Stage: StageControllers, Object: "Cluster API", State: StateWrong,
			Troubles: []Trouble{{Reason: "no provider is installed", code: "NotInstalled"}},
		})
	case !broken && len(c.installed) > 0:
		c.add(Link{Stage: StageControllers, Object: "the providers' controllers", State: StateOK})
	}
}

// uses tells whether the cluster needs a provider. It needs all providers except for those of another infrastructure, as far as the names
// tell.
func (c *chain) uses(p capi.InstalledProvider) bool {
	if c.cluster == nil || p.Type != releases.Infrastructure {
		return true
	}
	fits := func(name string) bool {
		return strings.HasPrefix(strings.ToLower(c.cluster.Infrastructure), strings.ToLower(name))
	}
	another := slices.ContainsFunc(c.installed,
		func(o capi.InstalledProvider) bool { return o.Type == p.Type && o.Name != p.Name && fits(o.Name) })
	return fits(p.Name) || !another
}

// clusterLinks are the Cluster, the objects that it refers to, and its other parts with a trouble.
func (c *chain) clusterLinks() {
	if c.root == nil {
		c.add(Link{Stage: StageCluster, Object: objectName("Cluster", c.key), State: StateAbsent})
		return
	}
	c.root.Walk(func(p *capi.Part, _ int) {
		key := kube.Key{Namespace: p.GetNamespace(), Name: p.GetName()}
		l := Link{Stage: StageCluster, Object: objectName(p.GetKind(), key), kind: p.GetKind(), Troubles: c.partTroubles(p)}
		if p.Provider {
			l.Stage = StageProvider
		}
		if p == c.root && c.cluster != nil {
			l.Detail = strings.Trim(c.cluster.Phase+", "+c.cluster.Version, ", ")
			if len(l.Troubles) > 0 && c.cluster.Available && !c.cluster.Paused {
				l.Troubles = c.ownerTroubles() // the others are work in progress in a working cluster
			}
		}
		l.judge()
		if l.broken() || p == c.root || c.isNamed(p) {
			c.parts = append(c.parts, partLink{c.add(l), p})
		}
	})
}

// workloadLinks are the objects that install Flux on the cluster, or apply what Flux would apply.
func (c *chain) workloadLinks() {
	for _, o := range c.flux.Kustomizations {
		if o.Workload != "" && o.Namespace == c.key.Namespace && strings.HasPrefix(o.Name, c.key.Name+"-") {
			c.fluxLink(StageWorkloadFlux, o)
		}
	}
}
