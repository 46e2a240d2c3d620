package render

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// waiter is a Kustomization or a HelmRelease whose source was not found yet. A later wave may declare it.
type waiter struct {
	object *Object
	// source is the kind of the source with its target, namespace and name.
	source string
}

// await keeps an object for later. It returns false if its source was given up.
func (w *walk) await(o *Object, kind, namespace, name string) bool {
	source := kind + "\x00" + lookupKey(o.Targets, namespace, name)
	if w.givenUp[source] {
		return false
	}
	w.waiting = append(w.waiting, waiter{o, source})
	return true
}

// awaited returns the objects whose source was found, or was given up.
func (w *walk) awaited() []*Object {
	var all []*Object
	w.waiting = slices.DeleteFunc(w.waiting, func(waits waiter) bool {
		over := w.givenUp[waits.source] || w.isFound(waits.source)
		if over {
			all = append(all, waits.object)
		}
		return over
	})
	return all
}

func (w *walk) isFound(source string) (found bool) {
	switch kind, key, _ := strings.Cut(source, "\x00"); kind {
	case sourcev1.GitRepositoryKind:
		_, found = w.sources[key]
	case sourcev1.HelmChartKind:
		_, found = w.charts[key]
	case kindArtifact:
		_, found = w.artifacts[key]
	default:
		_, found = w.repositories[source]
	}
	return found
}

// mostGivenUp is how many sources are given up one by one. Then all others are given up together.
const mostGivenUp = 1000

// giveUp gives up the source that most Kustomizations wait for, and after them the one that most HelmReleases wait for: what such a
// Kustomization applies may declare the other sources. It returns false if nothing waits.
func (w *walk) giveUp() bool {
	waits, most := map[string]int{}, ""
	for _, kind := range []string{KindKustomization, KindHelmRelease} {
		for _, one := range w.waiting {
			if len(w.givenUp) >= mostGivenUp {
				w.givenUp[one.source] = true
			}
			if one.object.Kind != kind {
				continue
			}
			if waits[one.source]++; most == "" || waits[one.source] > waits[most] {
				most = one.source
			}
		}
		if most != "" {
			w.givenUp[most] = true
			return true
		}
	}
	return false
}

// further returns the Kustomizations among fresh objects and among those that waited. It renders the HelmReleases.
func (w *walk) further(ctx context.Context, fresh []*Object) []*item {
	waited := w.awaited()
	made := w.releases(ctx, append(waited, fresh...))
	return append(w.kustomizationsOf(waited), w.next(append(fresh, made...))...)
}

// isUnknown tells whether a source is a Git repository that nothing has declared so far, so that it may be this repo or another one. A
// management cluster's own source, and those of channels, are always this repo.
func (w *walk) isUnknown(targets []string, kind, namespace, name string) bool {
	if kind != sourcev1.GitRepositoryKind || w.isChannel(name) ||
		namespace == cmp.Or(w.own.Namespace, fluxSystem) && name == cmp.Or(w.own.Name, fluxSystem) {
		return false
	}
	_, known := w.sources[lookupKey(targets, namespace, name)]
	return !known
}

// awaitChart keeps a HelmRelease for later if the source of its chart was not found yet. Sources of charts outside of the repo only matter
// if somebody may have the charts.
func (w *walk) awaitChart(o *Object, j *job) bool {
	chart := ownChart(&j.spec.Spec, o.Namespace)
	if ref := j.spec.Spec.ChartRef; chart == nil && ref != nil {
		namespace := cmp.Or(ref.Namespace, o.Namespace)
		switch ref.Kind {
		case sourcev1.OCIRepositoryKind:
			return w.isUnknownRepository(o.Targets, ref.Kind, namespace, ref.Name) && w.await(o, ref.Kind, namespace, ref.Name)
		case sourcev1.HelmChartKind:
			if chart = w.charts[lookupKey(o.Targets, namespace, ref.Name)]; chart == nil {
				return w.await(o, ref.Kind, namespace, ref.Name)
			}
		}
	}
	if chart == nil {
		return false
	}
	kind, namespace, name := chart.sourceKind, chart.sourceNamespace, chart.sourceName
	return (w.isUnknown(o.Targets, kind, namespace, name) || w.isUnknownRepository(o.Targets, kind, namespace, name)) &&
		w.await(o, kind, namespace, name)
}

// isUnknownRepository tells whether a source is a repository of charts that nothing has declared so far.
func (w *walk) isUnknownRepository(targets []string, kind, namespace, name string) bool {
	if w.r.outside == nil || kind != sourcev1.HelmRepositoryKind && kind != sourcev1.OCIRepositoryKind {
		return false
	}
	_, known := w.repositories[kind+"\x00"+lookupKey(targets, namespace, name)]
	return !known
}
