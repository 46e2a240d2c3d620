package following

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// Tree is a folder with the files of a fleet repo, and their fleet.yaml.
type Tree struct {
	Dir   string
	Fleet *v1alpha1.Fleet
}

// Arrival describes a workload cluster that moves to the management cluster Name, which keeps its other clusters.
type Arrival struct {
	Rehearsal

	// Namespace of the workload cluster.
	Namespace string
	// Before is the fleet repo without the workload cluster at the management cluster, and After the fleet repo with it. They are equal if
	// the fleet repo declares the workload cluster there already.
	Before, After Tree
	// Source has the objects of the workload cluster. It is nil once the management cluster has them.
	Source *kube.Client
	// Suspended, if not nil, is told which Kustomizations and HelmReleases of After are suspended, by their kind without its version.
	Suspended func(refs map[kube.Ref]bool)
}

// RehearseArrival is Rehearse for the changes that the arrival of a workload cluster makes: the objects that differ between Before and
// After, and the objects in the namespace of the workload cluster. It ignores the other objects of the management cluster.
func RehearseArrival(ctx context.Context, at *kube.Client, a Arrival) error {
	before, err := a.wanted(ctx, a.Before)
	if err != nil || before.Broken != "" {
		return a.unrendered(ctx, before, err)
	}
	after := before
	if a.After != a.Before {
		if after, err = a.wanted(ctx, a.After); err != nil || after.Broken != "" {
			return a.unrendered(ctx, after, err)
		}
	}
	if a.Suspended != nil {
		a.Suspended(after.suspended())
	}
	stays, goes := map[kube.Ref]bool{}, map[kube.Ref]bool{}
	for _, o := range after.Objects {
		stays[o.ref()] = true
	}
	for _, o := range before.Objects {
		goes[o.ref()] = !stays[o.ref()]
	}
	a.keys = func(ctx context.Context) (secret.Keys, error) { return fleetsecrets.ClusterKeys(ctx, at) }
	return a.try(ctx, at, a.difference(before, after), flux.ChartOptions{Live: a.Source, TakeUp: true}, func(ref kube.Ref) bool {
		ref.Version = "" // another version of it is the same object
		return !goes[ref]
	})
}

// wanted returns the objects that the Flux of the management cluster would apply from a fleet repo.
func (a Arrival) wanted(ctx context.Context, t Tree) (*wantedAnswer, error) {
	q := wantedQuestion{Dir: t.Dir, ManagementCluster: a.Name, Fleet: t.Fleet}
	return WantedTask.Run(ctx, q, confine.Needs{Read: []string{t.Dir}})
}

// difference returns the objects of after that the arrival concerns.
func (a Arrival) difference(before, after *wantedAnswer) *wantedAnswer {
	was := map[wantedKey]wantedObject{}
	for _, o := range before.Objects {
		was[o.key()] = o
	}
	out := *after
	out.Objects = slices.DeleteFunc(slices.Clone(after.Objects), func(o wantedObject) bool {
		then, is := was[o.key()]
		return is && bytes.Equal(then.Content, o.Content) && o.Namespace != a.Namespace
	})
	if a.After != a.Before {
		out.Elsewhere = slices.DeleteFunc(slices.Clone(after.Elsewhere), func(e string) bool { return slices.Contains(before.Elsewhere, e) })
	}
	return &out
}

// suspended returns the objects that Flux applies suspended.
func (a *wantedAnswer) suspended() map[kube.Ref]bool {
	refs := map[kube.Ref]bool{}
	for _, o := range a.Objects {
		var content struct {
			Spec struct {
				Suspend bool `json:"suspend"`
			} `json:"spec"`
		}
		if flux.IsWorker(o.ref().GroupKind()) && json.Unmarshal(o.Content, &content) == nil && content.Spec.Suspend {
			refs[o.ref()] = true
		}
	}
	return refs
}

// wantedKey identifies an object and the Flux object that applies it.
type wantedKey struct{ apiVersion, kind, namespace, name, by, release string }

func (o wantedObject) key() wantedKey {
	return wantedKey{o.APIVersion, o.Kind, o.Namespace, o.Name, o.By, o.Release}
}

// ref is the object without the version of its kind.
func (o wantedObject) ref() kube.Ref {
	r := kube.Ref{Key: kube.Key{Namespace: o.Namespace, Name: o.Name}}
	if group, _, found := strings.Cut(o.APIVersion, "/"); found {
		r.Group = group
	}
	r.Kind = o.Kind
	return r
}
