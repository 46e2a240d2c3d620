package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// plainCopy returns a copy of an object without the fields that depend on the cluster that stores it, and without the marks of a hand-over.
// Apart from its metadata, the copy shares its fields with the item, so their content must not be changed.
func plainCopy(item *Item) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: maps.Clone(item.Object)}
	if metadata, ok := obj.Object["metadata"].(map[string]any); ok {
		obj.Object["metadata"] = maps.Clone(metadata)
	}
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "generateName",
		"deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	annotations := obj.GetAnnotations()
	if _, held := annotations[HeldMark]; held {
		delete(annotations, clusterv1.PausedAnnotation)
	}
	for _, mark := range copyMarks() {
		delete(annotations, mark)
	}
	obj.SetAnnotations(annotations)
	if item.kind.status {
		delete(obj.Object, "status")
	}
	return obj
}

// hasStatus tells whether the status of the item is copied. The status of a Flux source is not: it leads to an artifact on the source's
// management cluster, and controllers at the target would request this artifact again and again.
func (i *Item) hasStatus() bool {
	return i.kind.status && i.Object["status"] != nil && !i.Anew && i.kind.Group != fluxSourceGroup
}

// statusOf returns the status for a copy with this generation. A change that the source's controllers have not observed must not count as
// observed on the copy. The hand-over's own pause is no such change.
func statusOf(source *unstructured.Unstructured, generation int64) any {
	status := runtime.DeepCopyJSONValue(source.Object["status"])
	made := source.GetGeneration()
	if _, paused := source.GetAnnotations()[PausedMark]; paused && source.GetKind() == clusterGroupKind.Kind {
		made--
	}
	lag(status, made, generation)
	return status
}

// lag sets each observedGeneration in value so that it is as far behind generation as the original is behind source. It removes an
// observedGeneration that would be 0 or less.
func lag(value any, source, generation int64) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			seen, ok := inner.(int64)
			if !ok || name != "observedGeneration" {
				lag(inner, source, generation)
				continue
			}
			value[name] = generation - max(0, source-seen)
			if generation <= max(0, source-seen) {
				delete(value, name)
			}
		}
	case []any:
		for _, inner := range value {
			lag(inner, source, generation)
		}
	}
}

// sameValue tells whether two values of objects are equal in JSON.
func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true // nearly all are equal, and this check is much faster
	}
	first, err := json.Marshal(a)
	if err != nil {
		return false
	}
	second, err := json.Marshal(b)
	if err != nil {
		return false
	}
	var x, y any
	return json.Unmarshal(first, &x) == nil && json.Unmarshal(second, &y) == nil && reflect.DeepEqual(x, y)
}

// Differences describes how the copies at the target differ from the graph: missing objects, changed objects, and objects with other
// owners. A hand-over needs a target without differences. Differences also returns all copies with this id of the graph's kinds.
func (m *Members) Differences(
	ctx context.Context, graph *Graph, id string,
) (differences []string, copies []*unstructured.Unstructured, err error) {
	there, err := m.objectsLike(ctx, graph)
	if err != nil {
		return nil, nil, err
	}
	for _, have := range there {
		if have.GetAnnotations()[HandoverMark] == id {
			copies = append(copies, have)
		}
	}
	uids := map[types.UID]types.UID{}
	for _, item := range graph.Items {
		if have := there[keyOfItem(item)]; have != nil {
			uids[item.GetUID()] = have.GetUID()
		}
	}
	for _, item := range graph.Items {
		have := there[keyOfItem(item)]
		switch {
		case have == nil:
			differences = append(differences, item.Ref().String()+" did not arrive")
		case stays(have, item) && !isCopy(have, item, id): // the target keeps its own object
		default:
			differences = append(differences, differ(item, have, uids)...)
		}
	}
	return differences, byRef(copies), nil
}

func differ(item *Item, have *unstructured.Unstructured, uids map[types.UID]types.UID) []string {
	wanted := plainCopy(item)
	got := plainCopy(&Item{Unstructured: have, kind: item.kind})
	var differences []string
	if a, b := mapOwners(item.GetOwnerReferences(), uids), have.GetOwnerReferences(); !slices.EqualFunc(a, b, sameOwner) {
		differences = append(differences, fmt.Sprintf("%s has other owners", item.Ref()))
	}
	for _, obj := range []*unstructured.Unstructured{wanted, got} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "ownerReferences")
	}
	if item.hasStatus() {
		wanted.Object["status"] = statusOf(item.Unstructured, have.GetGeneration())
		got.Object["status"] = have.Object["status"]
	}
	if at := lacking(wanted.Object, got.Object, ""); at != "" {
		differences = append(differences, fmt.Sprintf("%s differs in %s", item.Ref(), at))
	}
	return differences
}

func mapOwners(owners []metav1.OwnerReference, uids map[types.UID]types.UID) []metav1.OwnerReference {
	var mapped []metav1.OwnerReference
	for _, o := range owners {
		if uid := uids[o.UID]; uid != "" {
			o.UID = uid
			mapped = append(mapped, o)
		}
	}
	return mapped
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Kind == b.Kind && a.Name == b.Name && a.APIVersion == b.APIVersion
}

// lacking returns the first field of wanted that differs in got, or "" if there is none. It ignores other fields of got, because a newer
// release of the provider may set more defaults.
func lacking(wanted, got any, at string) string {
	fields, isMap := wanted.(map[string]any)
	if !isMap {
		if sameValue(wanted, got) {
			return ""
		}
		list, isList := wanted.([]any)
		other, ok := got.([]any)
		if !isList || !ok || len(list) != len(other) {
			return at
		}
		for i := range list {
			if inner := lacking(list[i], other[i], fmt.Sprintf("%s[%d]", at, i)); inner != "" {
				return inner
			}
		}
		return ""
	}
	other, ok := got.(map[string]any)
	if !ok && len(fields) > 0 {
		return at
	}
	for name, value := range fields {
		if inner := lacking(value, other[name], at+"."+name); inner != "" {
			return inner
		}
	}
	return ""
}
