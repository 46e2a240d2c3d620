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
	text, err := json.Marshal(map[string]any{"kind": o.Kind, "metadata": map[string]any{"annotations": annotations}, "spec": spec})
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
		`{"prune":true}`: {true, true},
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

// plainly is a cluster of manifests. The fields name what is open, and what is missing.
type plainly struct {
	open, without []string
	notPruned     bool
}

func (p plainly) objects() []*render.Object {
	owner := render.Owner{Kind: render.KindKustomization, Namespace: "flux-system", Name: "clusters"}
	all := []*render.Object{marking(object("Kustomization", "flux-system", "clusters", ""), kustomizeGroup+"/v1", owner, nil,
		map[string]any{"prune": !p.notPruned})}
	for _, one := range []struct {
		kind, apiVersion, name string
		spec                   map[string]any
	}{
		{"Cluster", capiGroup + "/v1beta2", "edge", nil},
		{"AWSCluster", "infrastructure." + capiGroup + "/v1beta2", "edge", nil},
		{"KubeadmControlPlane", "controlplane." + capiGroup + "/v1beta2", "edge-plane", map[string]any{"replicas": 3}},
		{"MachineDeployment", capiGroup + "/v1beta2", "edge-general", map[string]any{"clusterName": "edge", "replicas": 2}},
		{"AWSMachineTemplate", "infrastructure." + capiGroup + "/v1beta2", "edge-general", nil},
	} {
		if slices.Contains(p.without, one.kind) || slices.Contains(p.without, "all") {
			continue
		}
		annotations := map[string]string{pruneAnnotation: "disabled"}
		if slices.Contains(p.open, one.kind) {
			annotations = nil
		}
		all = append(all, marking(object(one.kind, "edge", one.name, "edge"), one.apiVersion, owner, annotations, one.spec))
	}
	return all
}

// A Cluster that stays keeps neither its machines nor its infrastructure: Flux deletes each object by its own annotation.
func TestProtectionOfManifests(t *testing.T) {
	const (
		opens = "takes the protection of cluster dev/edge away: "
		runs  = "takes cluster dev/edge (5 machines) out of the repo; it is protected, so it goes on to run, and nothing looks after it"
	)
	everything := []string{"AWSCluster", "KubeadmControlPlane", "MachineDeployment", "AWSMachineTemplate"}
	away := plainly{without: []string{"all"}}
	for name, c := range map[string]struct {
		before, after plainly
		want          string
	}{
		"all protected": {plainly{}, away, runs},
		"only a template open": {
			plainly{open: []string{"AWSMachineTemplate"}},
			away,
			runs,
		},
		"only the Cluster protected": {
			plainly{open: everything},
			away,
			"deletes parts of cluster dev/edge (5 machines): its Cluster stays, and Flux deletes what is not protected (1 AWSCluster, 1 " +
				"KubeadmControlPlane, 1 MachineDeployment)",
		},
		"Flux prunes nothing": {
			plainly{open: everything, notPruned: true},
			plainly{without: []string{"all"}, notPruned: true},
			runs,
		},
		"the Cluster alone leaves": {
			plainly{open: everything},
			plainly{open: everything, without: []string{"Cluster"}},
			runs,
		},
		"an open pool leaves": {
			plainly{open: everything},
			plainly{open: everything, without: []string{"MachineDeployment"}},
			"removes pool general of dev/edge (2 machines)",
		},
		"a protected pool leaves": {
			plainly{},
			plainly{without: []string{"MachineDeployment"}},
			"takes pool general of dev/edge (2 machines) out of the repo; it is protected, so it goes on to run, and nothing looks after it",
		},
		"opens the control plane": {
			plainly{},
			plainly{open: []string{"KubeadmControlPlane", "MachineDeployment"}},
			opens + "parts of it are no longer protected (1 KubeadmControlPlane); deleting its folder would then delete them",
		},
		"opens a pool": {plainly{}, plainly{open: []string{"MachineDeployment"}}, "changes 1 other object of dev: 1 MachineDeployment"},
		"opens all": {
			plainly{},
			plainly{open: append([]string{"Cluster"}, everything...)},
			opens + "its Cluster is no longer protected, parts of it are no longer protected (1 AWSCluster, 1 KubeadmControlPlane); deleting its " +
				"folder would then delete it\nchanges 1 other object of dev: 1 AWSCluster",
		},
		"Flux begins to prune": {
			plainly{open: []string{"Cluster"}, notPruned: true},
			plainly{open: []string{"Cluster"}},
			opens + "its Cluster is no longer protected; deleting its folder would then delete it\nchanges 1 other object of dev: 1 Kustomization",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := c.before.objects(), c.after.objects()
			var words []string
			for _, i := range impactOf(compare(before, after, stayNot), before, after, nil) {
				words = append(words, i.Summary)
			}
			if got := strings.Join(words, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
