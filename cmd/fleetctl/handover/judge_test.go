//go:build e2e

package handover

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// judge says what is wrong with a world. It knows what was there at the beginning and nothing of how it got elsewhere.
type judge struct {
	world *world
	// status tells that what is reported of objects has to arrive, too. Stock clusterctl does not do that: controllers find it out again.
	status bool
}

// fleetNamespaces are the namespaces whose objects are handed over.
var fleetNamespaces = []string{"team-a", "team-b", "team-c"}

// travels tells that an object has to be at exactly one side, whatever happens.
func travels(i id) bool {
	return slices.Contains(fleetNamespaces, i.namespace) && !isReferenced(i)
}

// isReferenced tells whether objects that are handed over need this object, which does not belong to a Cluster. It has to arrive at the
// target, and may stay at the source.
func isReferenced(i id) bool {
	switch i.name {
	case "aso-credentials", "alpha-values", "prod", "prod-identity":
		return true
	}
	return false
}

// sides reads both sides, after the played controllers have finished their work.
func (j judge) sides(ctx context.Context, t testing.TB) (source, target snapshot) {
	t.Helper()
	j.world.source.settle(ctx, t)
	j.world.target.settle(ctx, t)
	source, target = j.world.source.read(ctx, t), j.world.target.read(ctx, t)
	source.hidesCanary(t, "the source")
	target.hidesCanary(t, "the target")
	return source, target
}

// meanwhile is what has to hold at any moment, also when a program was just killed.
func (j judge) meanwhile(ctx context.Context, t testing.TB) []string {
	t.Helper()
	source, target := j.sides(ctx, t)
	var faults []string
	for i := range j.world.sourceBefore {
		if travels(i) && source[i] == nil && target[i] == nil {
			faults = append(faults, fmt.Sprintf("lost: %s is at neither side", i))
		}
	}
	faults = append(faults, twoOwners(source, target)...)
	return append(faults, orphans("the target", target)...)
}

// handedOver is what has to hold once a hand-over has said that it is done.
func (j judge) handedOver(ctx context.Context, t testing.TB) []string {
	t.Helper()
	source, target := j.sides(ctx, t)
	faults := append(j.arrived(target), twoOwners(source, target)...)
	for i := range j.world.sourceBefore {
		if travels(i) && source[i] != nil {
			faults = append(faults, fmt.Sprintf("doubled: %s is still at the source", i))
		}
	}
	faults = append(faults, held("the target", j.world.sourceBefore, target)...)
	faults = append(faults, orphans("the target", target)...)
	faults = append(faults, orphans("the source", source)...)
	faults = append(faults, fences("the target", target)...)
	for i, obj := range j.world.targetBefore {
		faults = append(faults, j.compare("at the target", obj, target[i], i)...)
	}
	return faults
}

// arrived compares what the source had with what the target has.
func (j judge) arrived(target snapshot) []string {
	var faults []string
	for i, before := range j.world.sourceBefore {
		before, after := withoutStored(before), target[i]
		switch {
		case j.world.attached[i] != nil: // a pivot has pointed it elsewhere
		case travels(i) || j.status && isReferenced(i):
			faults = append(faults, j.compare("at the target", before, withoutMarks(after), i)...)
		case i.namespace == "flux-system" && after != nil && j.world.targetBefore[i] == nil:
			faults = append(faults, j.compare("at the target", before, withoutMarks(after), i)...)
		}
	}
	for i := range target {
		if slices.Contains(fleetNamespaces, i.namespace) && j.world.sourceBefore[i] == nil {
			faults = append(faults, fmt.Sprintf("from nowhere: %s is at the target", i))
		}
	}
	return faults
}

// withoutStored is an object of Flux without what leads to files of the source's own source-controller, which the target's cannot serve.
func withoutStored(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj.GroupVersionKind().Group != "source.toolkit.fluxcd.io" {
		return obj
	}
	o := obj.DeepCopy()
	o.Object["status"] = map[string]any{} // as the CRD has it for an object that nobody has looked at
	return o
}

// asBefore is what has to hold once an abort has said that it is done.
func (j judge) asBefore(ctx context.Context, t testing.TB) []string {
	t.Helper()
	source, target := j.sides(ctx, t)
	faults := held("the source", j.world.sourceBefore, source)
	faults = append(faults, j.unchanged("the source", j.world.sourceBefore, source)...)
	return append(faults, j.unchanged("the target", j.world.targetBefore, target)...)
}

// marks are the annotations that a hand-over leaves on objects: the hand-over, the object's state at the source, and the Cluster's owner.
var marks = []string{"fleetctl.dev/handover", "fleetctl.dev/handover-source", "fleetctl.dev/handover-stays", "fleetctl.dev/owner"}

func withoutMarks(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	o := obj.DeepCopy()
	for _, mark := range marks {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", mark)
	}
	if len(o.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
	return o
}

func (j judge) unchanged(where string, before, after snapshot) []string {
	var faults []string
	for i, obj := range before {
		if i.kind == "Pod" {
			continue // they were stopped and are there again: settle has seen to that
		}
		faults = append(faults, j.compare("at "+where, obj, after[i], i)...)
		if now := after[i]; now != nil && now.GetUID() != obj.GetUID() {
			faults = append(faults, fmt.Sprintf("made anew: %s at %s", i, where))
		}
	}
	for i := range after {
		// An empty namespace may stay: who deletes one cannot know what else comes into it meanwhile.
		if before[i] == nil && i.kind != "Pod" && i.kind != "Namespace" {
			faults = append(faults, fmt.Sprintf("left: %s at %s", i, where))
		}
	}
	return faults
}

// compare two versions of an object, but for what an API server writes anew.
func (j judge) compare(where string, before, after *unstructured.Unstructured, i id) []string {
	if i.kind == "Pod" {
		return nil
	}
	if after == nil {
		return []string{fmt.Sprintf("lost: %s is not %s", i, where)}
	}
	var faults []string
	if ahead := observedAhead(after); ahead != "" {
		faults = append(faults, fmt.Sprintf("ahead: %s %s: %s", i, where, ahead))
	}
	a, b := j.essence(before), j.essence(after)
	if difference := cmp.Diff(a, b); difference != "" {
		faults = append(faults, fmt.Sprintf("changed: %s %s (-before +after):\n%s", i, where, difference))
	}
	if want, have := topologyFields(before), topologyFields(after); want != have {
		faults = append(faults, fmt.Sprintf("managed fields: the topology's of %s %s are %q, want %q", i, where, have, want))
	}
	return faults
}

// essence is an object without what depends on the side that it is at.
func (j judge) essence(obj *unstructured.Unstructured) map[string]any {
	o := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	owners := o.GetOwnerReferences()
	for n := range owners {
		owners[n].UID = ""
	}
	if len(owners) > 0 {
		slices.SortFunc(owners, func(a, b ownerReference) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
		o.SetOwnerReferences(owners)
	}
	if !j.status {
		delete(o.Object, "status")
		return o.Object
	}
	status, _ := o.Object["status"].(map[string]any)
	delete(status, "observedGeneration") // it may be behind, and observedAhead says where it is ahead
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		delete(c.(map[string]any), "observedGeneration")
	}
	if o.GetKind() == "Deployment" {
		delete(o.Object, "status") // the test writes it; settle has seen it right
	}
	return o.Object
}

func observedGeneration(obj *unstructured.Unstructured) int64 {
	observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return observed
}

// observedAhead says where an object claims to have been seen at a generation that it has not reached.
func observedAhead(obj *unstructured.Unstructured) string {
	if g := observedGeneration(obj); g > obj.GetGeneration() {
		return fmt.Sprintf("observed generation %d of %d", g, obj.GetGeneration())
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if g, _, _ := unstructured.NestedInt64(c.(map[string]any), "observedGeneration"); g > obj.GetGeneration() {
			return fmt.Sprintf("a condition observed generation %d of %d", g, obj.GetGeneration())
		}
	}
	return ""
}

// ownerUID is in the name of the field of an owner reference.
var ownerUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// topologyFields are the fields that the topology's controller applied: without them it would never take one away again.
func topologyFields(obj *unstructured.Unstructured) string {
	for _, m := range obj.GetManagedFields() {
		if m.Manager == "capi-topology" && m.Operation == "Apply" && m.FieldsV1 != nil {
			return ownerUID.ReplaceAllString(m.FieldsV1.String(), "uid")
		}
	}
	return ""
}

// sorted faults, each once.
func sorted(faults []string) []string {
	unique := map[string]bool{}
	for _, f := range faults {
		unique[f] = true
	}
	return slices.Sorted(maps.Keys(unique))
}
