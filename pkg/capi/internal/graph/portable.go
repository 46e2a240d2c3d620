package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Portable is an item of a Graph in a form that can be stored away from its management cluster.
type Portable struct {
	// Object is the object in the management cluster, with its metadata and status.
	Object json.RawMessage `json:"object"`
	// Shared and Anew are the fields of Item.
	Shared bool `json:"shared,omitempty"`
	Anew   bool `json:"anew,omitempty"`
}

// Portable returns the graph's items in their stored form, owners before the objects that they own.
func (g *Graph) Portable() ([]Portable, error) {
	objects := make([]Portable, 0, len(g.Items))
	for _, item := range g.Items {
		content, err := item.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s: it is not an object", item.Ref()) // the error may quote a Secret
		}
		objects = append(objects, Portable{Object: content, Shared: item.Shared, Anew: item.Anew})
	}
	return objects, nil
}

// PausedIn returns a copy of objects with the Clusters paused for which is returns true. is gets NAMESPACE/NAME.
func PausedIn(objects []Portable, is func(cluster string) bool) ([]Portable, error) {
	all := slices.Clone(objects)
	for i, o := range all {
		obj := unstructured.Unstructured{}
		if obj.UnmarshalJSON(o.Object) != nil || obj.GroupVersionKind().GroupKind() != clusterGroupKind ||
			!is(obj.GetNamespace()+"/"+obj.GetName()) {
			continue
		}
		if err := unstructured.SetNestedField(obj.Object, true, "spec", "paused"); err != nil {
			return nil, err
		}
		content, err := obj.MarshalJSON()
		if err != nil {
			return nil, err
		}
		all[i].Object = content
	}
	return all, nil
}

// GraphOf returns the graph of stored objects, to copy it to this management cluster. The error names the kinds that this cluster does not
// store in the same version, or the first entry that is not an object.
func (m *Members) GraphOf(ctx context.Context, objects []Portable) (*Graph, error) {
	kinds, err := m.heldKinds(ctx)
	if err != nil {
		return nil, err
	}
	served := map[schema.GroupVersionKind]*heldKind{}
	for _, k := range kinds {
		served[k.GroupVersionKind] = k
	}
	all := map[*heldKind]*listed{}
	stored := make(map[string]Portable, len(objects))
	var found []listed
	unknown := map[schema.GroupVersionKind]int{}
	var left []string
	for i, o := range objects {
		obj := unstructured.Unstructured{}
		if obj.UnmarshalJSON(o.Object) != nil || obj.GetName() == "" || obj.GetUID() == "" || stored[string(obj.GetUID())].Object != nil {
			return nil, fmt.Errorf("object %d has no name, or no UID of its own", i+1)
		}
		stored[string(obj.GetUID())] = o
		kind := served[obj.GroupVersionKind()]
		if kind == nil && o.Shared && !isOfCloud(obj.GroupVersionKind().Group) {
			// Earlier releases also stored what had made a Secret, such as an ExternalSecret.
			left = append(left, fmt.Sprintf("%s is left out: this management cluster does not serve its kind", kube.RefOf(&obj)))
			continue
		}
		if kind == nil {
			unknown[obj.GroupVersionKind()]++
			continue
		}
		if all[kind] == nil {
			all[kind] = &listed{kind: kind}
		}
		all[kind].objects = append(all[kind].objects, obj)
	}
	if err := notServed(unknown); err != nil {
		return nil, err
	}
	for _, l := range all {
		found = append(found, *l)
	}
	g := newGraph(found, true)
	for _, n := range g.nodes {
		n.taken, n.selected = true, true
	}
	result := g.result(GraphOptions{})
	result.Missing = append(result.Missing, left...)
	for _, item := range result.Items {
		o := stored[string(item.GetUID())]
		item.Shared, item.Anew = o.Shared, o.Anew
	}
	return result, nil
}

// isOfCloud tells by its name whether an API group is of Cluster API, of its providers, or of what providers bring with them.
func isOfCloud(group string) bool {
	return isOfClusterAPI(group) || strings.HasSuffix(group, azureGroups) || group == metal3Addresses || group == metal3Hosts
}

func notServed(unknown map[schema.GroupVersionKind]int) error {
	var errs []error
	for gvk, n := range unknown {
		errs = append(errs, fmt.Errorf(
			"%s of %s (%d of them) is not what this management cluster stores: its provider is missing here, or of another version",
			gvk.Kind, gvk.GroupVersion(), n))
	}
	slices.SortFunc(errs, func(a, b error) int {
		if a.Error() < b.Error() {
			return -1
		}
		return 1
	})
	return errors.Join(errs...)
}

// Clusters returns the graph's Clusters as NAMESPACE/NAME, sorted.
func (g *Graph) Clusters() []string {
	names := []string{}
	for _, item := range g.OfKind(clusterGroupKind.Kind) {
		names = append(names, item.Ref().Key.String())
	}
	slices.Sort(names)
	return names
}

// Available returns the graph's Clusters that are Available, as NAMESPACE/NAME, sorted. It leaves out Clusters that somebody has paused:
// Cluster API does not judge them, so they show an old finding, and nobody can wait until they are Available again.
func (g *Graph) Available() []string {
	names := []string{}
	for _, item := range g.OfKind(clusterGroupKind.Kind) {
		if isTrue(item.Unstructured, clusterv1.ClusterAvailableCondition) && !pausedByOthers(item.Unstructured) {
			names = append(names, item.Ref().Key.String())
		}
	}
	slices.Sort(names)
	return names
}

// Epoch returns the number of earlier hand-overs, from the owner annotations of the Clusters.
func (g *Graph) Epoch() int64 {
	var epoch int64
	for _, item := range g.OfKind(clusterGroupKind.Kind) {
		epoch = max(epoch, OwnerOf(item.Unstructured).Epoch)
	}
	return epoch
}

// isTrue tells whether a condition of an object is True.
func isTrue(obj *unstructured.Unstructured, condition string) bool {
	return apimeta.IsStatusConditionTrue(kube.Conditions(obj), condition)
}
