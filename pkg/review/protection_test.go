package review

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// shop is a cluster of the repo with a pool, as its files say it. Each field but the first four takes protection away.
type shop struct {
	noFolder, noNamespace, noCluster, requested bool

	namespaceOpen, releaseOpen, unkept, paused, notPruned bool
}

func (s shop) objects() []*render.Object {
	owner := render.Owner{Kind: render.KindKustomization, Namespace: "flux-system", Name: "flux-system"}
	root := marking(object("Kustomization", "flux-system", "flux-system", ""), "kustomize.toolkit.fluxcd.io/v1", owner, nil,
		map[string]any{"prune": !s.notPruned})
	all := []*render.Object{root}
	if s.noFolder {
		return all
	}
	protected := func(open bool) map[string]string {
		if open {
			return map[string]string{pruneAnnotation: "enabled"}
		}
		return map[string]string{pruneAnnotation: "disabled"}
	}
	release := protected(s.releaseOpen)
	if s.requested {
		release[removeAnnotation] = "requested"
	}
	spec := map[string]any{}
	if s.paused {
		spec["suspend"] = true
	}
	keep := map[string]string{}
	if !s.unkept {
		keep[keepAnnotation] = "keep"
	}
	helm := render.Owner{Kind: render.KindHelmRelease, Namespace: "shop", Name: "shop"}
	if !s.noNamespace {
		all = append(all, marking(object("Namespace", "", "shop", "shop"), "v1", owner, protected(s.namespaceOpen), nil))
	}
	all = append(all, marking(object("HelmRelease", "shop", "shop", "shop"), helmGroup+"/v2", owner, release, spec))
	if !s.noCluster {
		all = append(all,
			marking(object("Cluster", "shop", "shop", "shop"), capiGroup+"/v1beta2", helm, keep, nil),
			marking(object("MachineDeployment", "shop", "shop-general", "shop"), capiGroup+"/v1beta2", helm, nil,
				map[string]any{"clusterName": "shop", "replicas": 2}))
	}
	return all
}

func marking(o *render.Object, apiVersion string, owner render.Owner, annotations map[string]string, spec map[string]any) *render.Object {
	o.APIVersion, o.Owner = apiVersion, owner
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": spec})
	if err != nil {
		panic(err)
	}
	o.JSON = text
	return o
}

// What a change does to a cluster's protection, and to a cluster as it is protected before it. A cluster goes on to run only if nothing
// that would take it down is open.
func TestProtection(t *testing.T) {
	const (
		runs   = "takes cluster dev/shop (2 machines) out of the repo; it is protected, so it goes on to run, and nothing looks after it"
		gone   = "deletes cluster dev/shop (2 machines): "
		opens  = "takes the protection of cluster dev/shop away: "
		lost   = "not removed with fleetctl: dev/shop"
		opened = "not with fleetctl cluster remove: dev/shop"
	)
	stepOne := shop{requested: true, releaseOpen: true, unkept: true}
	cases := map[string]struct {
		before, after shop
		want, err     string
	}{
		"protected":          {shop{}, shop{noFolder: true}, runs, lost},
		"a chart keeps none": {shop{unkept: true}, shop{noFolder: true}, runs, lost},
		"namespace open":     {shop{namespaceOpen: true}, shop{noFolder: true}, gone + namespaceOpen, lost},
		"release open": {
			shop{releaseOpen: true},
			shop{noFolder: true},
			"deletes parts of cluster dev/shop (2 machines): its HelmRelease is not protected, so Flux uninstalls it and deletes what its chart " +
				"does not keep (1 MachineDeployment)", lost,
		},
		"release and cluster open": {
			shop{releaseOpen: true, unkept: true},
			shop{noFolder: true},
			gone + "its HelmRelease is not protected and its Cluster not kept, so Flux uninstalls it", lost,
		},
		"paused": {
			shop{releaseOpen: true, unkept: true, paused: true},
			shop{noFolder: true},
			"takes cluster dev/shop (2 machines) out of the repo; its HelmRelease is paused, which Flux only forgets, so it goes on to run, and " +
				"nothing looks after it", lost,
		},
		"step 2, paused": {
			shop{requested: true, releaseOpen: true, unkept: true, paused: true},
			shop{noFolder: true},
			"takes cluster dev/shop (2 machines) out of the repo; its HelmRelease is paused, which Flux only forgets, so it goes on to run, and " +
				"nothing looks after it", lost,
		},
		"paused, namespace open": {shop{namespaceOpen: true, paused: true}, shop{noFolder: true}, gone + namespaceOpen, lost},
		"Flux prunes nothing": {
			shop{namespaceOpen: true, releaseOpen: true, unkept: true, notPruned: true},
			shop{noFolder: true, notPruned: true},
			runs, lost,
		},
		"hand edit and deletion": {shop{}, shop{noFolder: true, namespaceOpen: true}, runs, lost},
		"no longer made":         {shop{}, shop{noCluster: true}, runs, lost},
		"no longer made or kept": {
			shop{unkept: true},
			shop{noCluster: true},
			gone + "its HelmRelease does not make it any more, and it is not kept", lost,
		},
		"namespace alone leaves": {shop{namespaceOpen: true}, shop{noNamespace: true}, gone + namespaceOpen, lost},
		"a guarded one leaves":   {shop{}, shop{noNamespace: true}, "takes 1 other object of dev out of the repo: 1 Namespace", ""},

		"step 1": {shop{}, stepOne, opens + "the next step deletes it", ""},
		"step 2": {stepOne, shop{noFolder: true}, "deletes cluster dev/shop (2 machines), as fleetctl cluster remove has prepared", ""},
		"cancel": {stepOne, shop{}, "changes 1 other object of dev: 1 Cluster", ""},
		"step 2, namespace open": {
			shop{requested: true, releaseOpen: true, unkept: true, namespaceOpen: true},
			shop{noFolder: true},
			"deletes cluster dev/shop (2 machines), as fleetctl cluster remove has prepared; but " + namespaceOpen +
				", and does not wait for Cluster API", "",
		},
		"annotated, protected": {shop{requested: true}, shop{noFolder: true}, runs, lost},

		"opens the namespace": {
			shop{}, shop{namespaceOpen: true}, opens + "its Namespace is no longer protected; deleting its folder would then delete it", opened,
		},
		"opens the release": {
			shop{},
			shop{releaseOpen: true},
			opens + "its HelmRelease is no longer protected; deleting its folder would then delete what its chart does not keep (1 " +
				"MachineDeployment)", opened,
		},
		"no longer keeps": {
			shop{}, shop{unkept: true}, opens + "its Cluster is no longer kept; uninstalling its HelmRelease would then delete it", opened,
		},
		"opens all": {
			shop{},
			shop{namespaceOpen: true, releaseOpen: true, unkept: true},
			opens + "its Namespace is no longer protected, its HelmRelease is no longer protected, its Cluster is no longer kept; deleting its " +
				"folder would then delete it", opened,
		},
		"step 1, opens the namespace": {
			shop{},
			shop{requested: true, releaseOpen: true, unkept: true, namespaceOpen: true},
			opens + "its Namespace is no longer protected; deleting its folder would then delete it\n" + opens + "the next step deletes it", opened,
		},
		"was open": {shop{namespaceOpen: true}, shop{namespaceOpen: true, paused: true}, "changes 1 other object of dev: 1 HelmRelease", ""},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			before, after := c.before.objects(), c.after.objects()
			r := &Report{Impact: impactOf(compare(before, after, stayNot), before, after, nil)}
			var words []string
			for _, i := range r.Impact {
				words = append(words, i.Summary)
			}
			if got := strings.Join(words, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			err := r.Err()
			if c.err == "" {
				if err != nil {
					t.Errorf("got error %v", err)
				}
				return
			}
			if refused, ok := errors.AsType[*diag.Error](err); !ok || refused.Code != diag.ExitNotReady || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want one with %q", err, c.err)
			}
		})
	}
}

// Flux goes by labels as well, and prunes nothing that it does not reconcile.
func TestOpen(t *testing.T) {
	owner := render.Owner{Kind: render.KindKustomization, Namespace: "flux-system", Name: "flux-system"}
	for text, want := range map[string]bool{
		`{"metadata":{}}`: true,
		`{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/prune":"enabled"}}}`:      true,
		`{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/prune":"Disabled"}}}`:     false,
		`{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/prune":"disabled"}}}`:          false,
		`{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`: false,
		`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`:                   true,
	} {
		o := object("Namespace", "", "shop", "shop")
		o.Owner, o.JSON = owner, []byte(text)
		if got := sideOf([]*render.Object{o}).open(o, nil); got != want {
			t.Errorf("%s: open is %v", text, got)
		}
	}
}

// A deletionPolicy deletes objects with their Kustomization, also without pruning.
func TestOpenByDeletionPolicy(t *testing.T) {
	for spec, want := range map[string]struct{ kept, leaves bool }{
		`{"prune":true}`:                                        {true, true},
		`{"prune":true,"deletionPolicy":"Orphan"}`:              {true, true},
		`{"prune":false}`:                                       {false, false},
		`{"prune":false,"deletionPolicy":"MirrorPrune"}`:        {false, false},
		`{"prune":false,"deletionPolicy":"Orphan"}`:             {false, false},
		`{"prune":false,"deletionPolicy":"Delete"}`:             {false, true},
		`{"prune":false,"deletionPolicy":"WaitForTermination"}`: {false, true},
	} {
		owner := object(render.KindKustomization, "flux-system", "clusters", "")
		owner.APIVersion, owner.JSON = kustomizeGroup+"/v1", []byte(`{"metadata":{},"spec":`+spec+`}`)
		o := object("Namespace", "", "shop", "shop")
		o.Owner, o.JSON = render.Owner{Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}, []byte(`{"metadata":{}}`)
		before := sideOf([]*render.Object{owner, o})
		for what, got := range map[string][2]bool{
			"the Kustomization stays":  {before.open(o, sideOf([]*render.Object{owner})), want.kept},
			"the Kustomization leaves": {before.open(o, sideOf(nil)), want.leaves},
			"nobody knows":             {before.open(o, nil), want.leaves},
		} {
			if got[0] != got[1] {
				t.Errorf("%s, %s: open is %v", spec, what, got[0])
			}
		}
	}
}
