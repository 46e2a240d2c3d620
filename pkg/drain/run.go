package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// rounds bounds how often Run looks again: a controller may be about to make one more, and one that makes them for ever is to be named.
const rounds = 3

// Run takes away all that Look lists and that does not stay, and waits until the cluster's controllers have done so: Services, Ingresses and Gateways that
// have load balancers; volumes with their claims, and what uses those. What stays stays. Whatever keeps the cluster as Git has it is to be suspended before. It can
// be run again. detail, if not nil, is told what is waited for.
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
				return fmt.Errorf("%w: still there: %s", context.Cause(ctx), left(c, items))
			}
			return err
		}
	}
}

// Names are the first few of the items, for people to read.
func Names(items []Item) string {
	const most = 5
	names := make([]string, 0, most+1)
	for _, i := range items[:min(most, len(items))] {
		names = append(names, i.String())
	}
	if len(items) > most {
		names = append(names, fmt.Sprintf("and %d more", len(items)-most))
	}
	return strings.Join(names, "; ")
}

// lookTime bounds the last look at what is there when the time is over.
const lookTime = 10 * time.Second

// left names those of the items that are there when the time is over.
func left(c *kube.Client, items []Item) string {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	now, err := Look(ctx, c)
	now = slices.DeleteFunc(now, func(i Item) bool { return i.Stays != "" })
	if err != nil || len(now) == 0 {
		now = items
	}
	return Names(now)
}

// remove deletes the items, and returns when they are gone.
func remove(ctx context.Context, c *kube.Client, items []Item) error {
	var balancers, volumes, claims []*unstructured.Unstructured
	for _, i := range items {
		if i.What == LoadBalancer {
			balancers = append(balancers, i.object)
			continue
		}
		volumes = append(volumes, i.object)
		if i.claim != nil {
			claims = append(claims, i.claim)
		}
	}
	return errors.Join(kube.Each(2, []func() error{
		func() error { return c.Delete(ctx, balancers, kube.DeleteOptions{Wait: true}) },
		func() error {
			if err := removeClaims(ctx, c, claims); err != nil {
				return err
			}
			return c.Delete(ctx, volumes, kube.DeleteOptions{Wait: true})
		},
	}, func(do func() error) error { return do() }))
}

// removeClaims deletes claims and what uses them: Kubernetes keeps a claim as long as a pod has it.
func removeClaims(ctx context.Context, c *kube.Client, claims []*unstructured.Unstructured) error {
	if len(claims) == 0 {
		return nil
	}
	users, err := usersOf(ctx, c, claims)
	if err != nil {
		return err
	}
	if err := c.Delete(ctx, users, kube.DeleteOptions{}); err != nil {
		return err
	}
	return c.Delete(ctx, claims, kube.DeleteOptions{Wait: true})
}

// usersOf are the pods that have one of the claims, and what makes such pods: what stands at the top of their owners, which would make them anew.
func usersOf(ctx context.Context, c *kube.Client, claims []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	wanted := map[kube.Key]bool{}
	namespaces := map[string]bool{}
	for _, claim := range claims {
		wanted[kube.RefOf(claim).Key], namespaces[claim.GetNamespace()] = true, true
	}
	seen := map[kube.Ref]bool{}
	var users []*unstructured.Unstructured
	for namespace := range namespaces {
		pods, err := c.ListKind(ctx, podKind, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if !uses(&pods[i], wanted) {
				continue
			}
			top, err := topOf(ctx, c, &pods[i])
			if err != nil {
				return nil, err
			}
			for _, ref := range []kube.Ref{top, kube.RefOf(&pods[i])} {
				if !seen[ref] {
					seen[ref] = true
					users = append(users, named(ref, ""))
				}
			}
		}
	}
	return users, nil
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

// mostOwners bounds the way up from a pod to what it belongs to.
const mostOwners = 8

// topOf goes from an object up to what controls it, as far as that is there.
func topOf(ctx context.Context, c *kube.Client, obj *unstructured.Unstructured) (kube.Ref, error) {
	for range mostOwners {
		owner := metav1.GetControllerOf(obj)
		if owner == nil {
			break
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		if kind.Group == "" && kind.Kind == "Node" { // the pod of a file on the machine
			break
		}
		next := &unstructured.Unstructured{}
		next.SetGroupVersionKind(kind)
		err := c.Get(ctx, kube.Key{Namespace: obj.GetNamespace(), Name: owner.Name}, next)
		if kube.IsAbsent(err) {
			break
		}
		if err != nil {
			return kube.Ref{}, fmt.Errorf("look what %s belongs to: %w", kube.RefOf(obj), err)
		}
		obj = next
	}
	return kube.RefOf(obj), nil
}
