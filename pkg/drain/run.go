package drain

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// rounds limits how often Run looks again. A controller may be about to make one more resource, and the error has to name a controller that
// makes them for ever.
const rounds = 3

// Run deletes everything that Look lists, except the items that stay, and waits until the cluster's controllers have finished: Services,
// Ingresses and Gateways that have load balancers; volumes with their claims, and the workloads that use the claims. Before, suspend
// everything that makes the cluster as Git has it. Run can be called again. It calls detail, if not nil, with what it waits for.
func Run(ctx context.Context, c *kube.Client, detail func(string)) error {
	for round := 0; ; round++ {
		items, err := Look(ctx, c)
		if err != nil {
			return err
		}
		items = slices.DeleteFunc(items, func(i Item) bool { return i.Stays != "" })
		if len(items) == 0 {
			return nil
		}
		if round == rounds {
			return diag.Errorf("find out what makes them, and stop it: a GitOps tool or an operator in the cluster",
				"something makes them again after they are deleted: %s", Names(items))
		}
		if detail != nil {
			detail(fmt.Sprintf("waiting for %s to go: %s", plain.Count(len(items), "object"), Names(items)))
		}
		if err := remove(ctx, c, items); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("%w: still there: %s", context.Cause(ctx), left(ctx, c, items))
			}
			return err
		}
	}
}

// Names are the first few of the items, for people to read.
func Names(items []Item) string {
	names := make([]string, 0, len(items))
	for _, i := range items {
		names = append(names, i.String())
	}
	return plain.Phrases(names, 5)
}

// lookTime limits the last look at the remaining items after the time is over.
const lookTime = 10 * time.Second

// left names the items that still exist after the time is over.
func left(ctx context.Context, c *kube.Client, items []Item) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	now, err := Look(ctx, c)
	now = slices.DeleteFunc(now, func(i Item) bool { return i.Stays != "" })
	if err != nil || len(now) == 0 {
		now = items
	}
	return Names(now)
}

// remove asks for the deletion of all items at once, and returns when they are gone. A PersistentVolume is only waited for: its provisioner
// deletes the volume in the cloud when the claim is gone, and does not where somebody has deleted the PersistentVolume before.
func remove(ctx context.Context, c *kube.Client, items []Item) error {
	var asked, claims, gone []*unstructured.Unstructured
	for _, i := range items {
		gone = append(gone, i.object)
		if i.What == LoadBalancer {
			asked = append(asked, i.object)
		}
		if i.claim != nil {
			claims = append(claims, i.claim)
		}
	}
	tops, err := topsOf(ctx, c, append(slices.Clone(asked), claims...))
	if err != nil {
		return err
	}
	// Delete the owners first: they would make the resources again.
	if err := c.Delete(ctx, tops, kube.DeleteOptions{}); err != nil {
		return err
	}
	if err := c.Delete(ctx, slices.Concat(asked, claims), kube.DeleteOptions{}); err != nil {
		return err
	}
	return untilGone(ctx, c, append(gone, claims...))
}

// untilGone waits until none of the objects exists any more, with one watch for each kind. A new object of the same name does not count.
func untilGone(ctx context.Context, c *kube.Client, objects []*unstructured.Unstructured) error {
	byKind := map[schema.GroupVersionKind][]*unstructured.Unstructured{}
	for _, o := range objects {
		byKind[o.GroupVersionKind()] = append(byKind[o.GroupVersionKind()], o)
	}
	kinds := make([]schema.GroupVersionKind, 0, len(byKind))
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	return kube.Each(len(kinds), kinds, func(kind schema.GroupVersionKind) error {
		err := c.Watch(ctx, kind, kube.Selection{}, func(now kube.Objects) (bool, error) {
			return !slices.ContainsFunc(byKind[kind], func(o *unstructured.Unstructured) bool {
				there := now[kube.RefOf(o).Key]
				return there != nil && (o.GetUID() == "" || there.GetUID() == o.GetUID())
			}), nil
		})
		if kube.IsAbsent(err) {
			return nil
		}
		return err
	})
}

// topsOf are the topmost owners of the objects, the pods that use one of the objects as their claim, and the topmost owners of these pods.
func topsOf(ctx context.Context, c *kube.Client, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	up := &upwards{client: c, seen: map[kube.Ref]bool{}}
	claims := map[kube.Key]bool{}
	for _, o := range objects {
		key := kube.RefOf(o).Key
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		err := c.Get(ctx, key, now)
		if kube.IsAbsent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", kube.RefOf(o), err)
		}
		if err := up.from(ctx, now); err != nil {
			return nil, err
		}
		if o.GroupVersionKind() == claimKind {
			claims[key] = true
		}
	}
	if len(claims) == 0 {
		return up.found, nil
	}
	pods, err := c.ListKind(ctx, podKind)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if !uses(&pods[i], claims) {
			continue
		}
		if err := up.from(ctx, &pods[i]); err != nil {
			return nil, err
		}
		up.add(kube.RefOf(&pods[i]), pods[i].GetUID())
	}
	return up.found, nil
}

// uses tells whether a pod has one of the claims.
func uses(pod *unstructured.Unstructured, claims map[kube.Key]bool) bool {
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, v := range volumes {
		fields, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "persistentVolumeClaim", "claimName")
		if _, ephemeral := fields["ephemeral"]; ephemeral { // its claim is called POD-VOLUME
			volume, _ := fields["name"].(string)
			name = pod.GetName() + "-" + volume
		}
		if name != "" && claims[kube.Key{Namespace: pod.GetNamespace(), Name: name}] {
			return true
		}
	}
	return false
}

// upwards finds what stands at the top of the owners of objects.
type upwards struct {
	client *kube.Client
	seen   map[kube.Ref]bool // each owner is looked at once
	found  []*unstructured.Unstructured
}

func (u *upwards) add(ref kube.Ref, uid types.UID) {
	if !u.seen[ref] {
		u.seen[ref] = true
		u.found = append(u.found, named(ref, uid))
	}
}

// mostOwners limits the number of owners on the way up from an object.
const mostOwners = 8

// from adds the controllers of an object, upwards from owner to owner, as far as they exist in the object's namespace. A cluster-wide
// owner, such as a machine or the namespace, is no workload. from does not add the object itself.
func (u *upwards) from(ctx context.Context, obj *unstructured.Unstructured) error {
	top := obj
	for range mostOwners {
		owner := metav1.GetControllerOf(top)
		if owner == nil {
			break
		}
		next := &unstructured.Unstructured{}
		next.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
		if u.seen[kube.Ref{GroupVersionKind: next.GroupVersionKind(), Key: kube.Key{Namespace: obj.GetNamespace(), Name: owner.Name}}] {
			return nil
		}
		err := u.client.Get(ctx, kube.Key{Namespace: obj.GetNamespace(), Name: owner.Name}, next)
		if kube.IsAbsent(err) || err == nil && next.GetNamespace() != obj.GetNamespace() {
			break
		}
		if err != nil {
			return fmt.Errorf("look what %s belongs to: %w", kube.RefOf(obj), err)
		}
		top = next
	}
	if top != obj {
		u.add(kube.RefOf(top), top.GetUID())
	}
	return nil
}
