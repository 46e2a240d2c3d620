package flux

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// helmOwner is the field manager under which helm-controller applies.
const helmOwner = "helm-controller"

// ToInstall is an object that the chart of a HelmRelease makes.
type ToInstall struct {
	*unstructured.Unstructured

	Release kube.Key
}

// ChartRehearsal is what the HelmReleases of a cluster would do there.
type ChartRehearsal struct {
	// Makes are the objects that the releases would create, and Changes the objects that they would change, with the fields.
	Makes, Changes []string
	// Untold lists the objects that could not be tried, with the reasons.
	Untold []error
}

// ChartOptions of RehearseCharts.
type ChartOptions struct {
	// Live, if not nil, is the cluster that has the objects of the charts now. This cluster is still to get them.
	Live *kube.Client
	// TakeUp treats HelmReleases that LetGo has suspended like others.
	TakeUp bool
}

type chartRehearsal struct {
	ChartOptions

	releases kube.Objects
	mu       sync.Mutex
	result   ChartRehearsal
}

// RehearseCharts tries what the charts of HelmReleases make, each object in a dry run as helm-controller, and changes nothing. A
// HelmRelease that is suspended, and not by Suspend, does nothing.
func (s *System) RehearseCharts(ctx context.Context, objects []ToInstall, o ChartOptions) (*ChartRehearsal, error) {
	w, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what flux applied: %w", err)
	}
	r := &chartRehearsal{ChartOptions: o, releases: w[helmReleaseKind]}
	if r.Live == nil {
		r.Live = s.client
	}
	if err := kube.Each(parallelism, objects, func(o ToInstall) error { return r.try(ctx, o) }); err != nil {
		return nil, err
	}
	slices.Sort(r.result.Makes)
	slices.Sort(r.result.Changes)
	slices.SortFunc(r.result.Untold, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return &r.result, nil
}

// try upgrades one object in a dry run.
func (r *chartRehearsal) try(ctx context.Context, o ToInstall) error {
	if r.rests(o.Release) {
		return nil
	}
	ref := kube.RefOf(o.Unstructured)
	says := fmt.Sprintf("%s of HelmRelease %s", ref, o.Release)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(ref.GroupVersionKind)
	err := kube.Retry(ctx, func(ctx context.Context) error { return r.Live.Get(ctx, ref.Key, live) })
	if kube.IsAbsent(err) {
		r.note(func(result *ChartRehearsal) { result.Makes = append(result.Makes, says) })
		return nil
	}
	var then *unstructured.Unstructured
	if err == nil {
		err = kube.Retry(ctx, func(ctx context.Context) error {
			then = o.DeepCopy()
			return r.Live.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(then), client.DryRunAll, client.ForceOwnership,
				client.FieldOwner(helmOwner))
		})
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		r.note(func(result *ChartRehearsal) { result.Untold = append(result.Untold, fmt.Errorf("%s: %w", says, err)) })
	default:
		if fields := changedFields(live.Object, then.Object); len(fields) > 0 {
			r.note(func(result *ChartRehearsal) {
				result.Changes = append(result.Changes, says+" ("+strings.Join(fields, ", ")+")")
			})
		}
	}
	return nil
}

// rests tells whether a HelmRelease does nothing.
func (r *chartRehearsal) rests(key kube.Key) bool {
	release := r.releases[key]
	if release == nil {
		return false
	}
	a := release.GetAnnotations()
	if before, is := a[letGoAnnotation]; is && r.TakeUp {
		return before == wasSuspended || a[letGoReconcile] == kustomizev1.DisabledValue
	}
	return rests(release) || a[reconcileAnnotation] == kustomizev1.DisabledValue
}

func (r *chartRehearsal) note(how func(*ChartRehearsal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how(&r.result)
}

// changedFields are the paths of the fields in which two states of an object differ, without what only tells of the object, and the status,
// which no chart sets.
func changedFields(live, then map[string]any) []string {
	var fields []string
	for _, field := range keysOf(live, then) {
		if field != "metadata" && field != "status" {
			fields = append(fields, changed(field, live[field], then[field])...)
		}
	}
	return fields
}

func changed(path string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	before, is := a.(map[string]any)
	after, are := b.(map[string]any)
	if !is || !are {
		return []string{path}
	}
	var fields []string
	for _, field := range keysOf(before, after) {
		fields = append(fields, changed(path+"."+field, before[field], after[field])...)
	}
	return fields
}

func keysOf(a, b map[string]any) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]any{a, b} {
			for key := range maps.Keys(m) {
				if !yield(key) {
					return
				}
			}
		}
	}))
}
