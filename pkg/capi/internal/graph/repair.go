package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Repairs lists what a graph's objects lack after a tool has restored them without owner references and status, as Velero does.
type Repairs struct {
	// Unknown names objects that probably had an owner, but whose owner cannot be determined. Their provider must find it again.
	Unknown []string
	// Absent are the objects that other objects name and that did not arrive. Without them, controllers would create something twice.
	Absent []string

	items []*repair
}

// repair has what one object lacks.
type repair struct {
	*Item
	owners []metav1.OwnerReference // to add
	status map[string]any          // to merge into its status
}

// Owners returns the number of objects that lack an owner reference.
func (r *Repairs) Owners() int {
	return r.count(func(i *repair) bool { return len(i.owners) > 0 })
}

// Statuses returns the number of objects that lack a status field which no controller can determine again.
func (r *Repairs) Statuses() int {
	return r.count(func(i *repair) bool { return len(i.status) > 0 })
}

func (r *Repairs) count(is func(*repair) bool) int {
	n := 0
	for _, i := range r.items {
		if is(i) {
			n++
		}
	}
	return n
}

// RepairOptions are the options of Members.Repair.
type RepairOptions struct {
	// ID is the ID of the hand-over. Repair marks each object of the graph with it.
	ID string
	// Paused, if not nil, tells for a Cluster, given as NAMESPACE/NAME, whether to pause it.
	Paused func(cluster string) bool
	// Progress, if not nil, is called by several goroutines after each repaired object.
	Progress func(done, total int)
}

// Repair adds to the graph's objects what they lack, and marks each object. It takes one write of the object and one of its status. No
// controller may act on the objects in the meantime. It can be repeated after an interruption at any point.
func (m *Members) Repair(ctx context.Context, graph *Graph, o RepairOptions) error {
	lacks := map[*Item]*repair{}
	for _, r := range graph.Repairs().items {
		lacks[r.Item] = r
	}
	done := make(chan struct{}, len(graph.Items))
	err := kube.Each(parallelism, graph.Items, func(item *Item) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.repairOne(ctx, item, lacks[item], o); err != nil {
			return fmt.Errorf("repair %s: %w", item.Ref(), err)
		}
		done <- struct{}{}
		if o.Progress != nil {
			o.Progress(len(done), len(graph.Items))
		}
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (m *Members) repairOne(ctx context.Context, item *Item, lacks *repair, o RepairOptions) error {
	if lacks != nil && len(lacks.status) > 0 { // before the mark, so that a marked object is complete
		patch, err := json.Marshal(map[string]any{"status": lacks.status})
		if err != nil {
			return err
		}
		err = kube.Retry(ctx, func(ctx context.Context) error {
			return m.kube.Status().Patch(ctx, item.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
		})
		if err != nil {
			return fmt.Errorf("write its status: %w", err)
		}
	}
	metadata, content := map[string]any{}, map[string]any{}
	if item.GetAnnotations()[HandoverMark] != o.ID {
		metadata["annotations"] = map[string]any{HandoverMark: o.ID}
	}
	if lacks != nil && len(lacks.owners) > 0 {
		metadata["ownerReferences"] = slices.Concat(item.GetOwnerReferences(), lacks.owners)
	}
	if item.kind.GroupKind() == clusterGroupKind && o.Paused != nil && o.Paused(item.Ref().Key.String()) &&
		!nestedBool(item, "spec", "paused") {
		content["spec"] = map[string]any{"paused": true}
	}
	if len(metadata) == 0 && len(content) == 0 {
		return nil
	}
	metadata["uid"] = string(item.GetUID()) // the API server refuses this if the name now belongs to another object
	content["metadata"] = metadata
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return kube.Retry(ctx, func(ctx context.Context) error {
		return m.kube.Patch(ctx, item.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
	})
}

// Groups returns the API groups of Cluster API and of the other providers that clusterctl has installed. The providers act on objects of
// these groups. cert-manager's groups are not among them: clusterctl installs cert-manager too, but other programs use it as well.
func (m *Members) Groups(ctx context.Context) ([]string, error) {
	kinds, err := m.heldKinds(ctx)
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, k := range kinds {
		if k.custom && k.provider {
			groups = append(groups, k.Group)
		}
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	if len(groups) == 0 {
		return nil, errors.New("no Cluster API is installed")
	}
	return groups, nil
}
