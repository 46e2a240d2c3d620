package pivot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// provenWithin bounds the wait for a cloud's answer to a provider without its credential.
const provenWithin = 4 * time.Minute

var leaseKind = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}

// proof is the proof that a provider reaches its cloud without a credential: after its new controller has become the active one, the
// provider tells again of some objects that the cloud has answered.
type proof struct {
	client  *kube.Client
	of      credentials.Replaceable
	objects []*unstructured.Unstructured
	// holders are the active controllers before the change, by the Lease that they hold.
	holders map[kube.Key]string
}

// newProof chooses the objects for the proof: one for each identity with which the provider asks the cloud. It is an error if there is
// none, because nothing could then tell whether the provider needs the credential.
func newProof(ctx context.Context, target *Target, of credentials.Replaceable) (*proof, error) {
	p := &proof{client: target.client, of: of, holders: map[kube.Key]string{}}
	all, err := target.manager.InGroups(ctx, infrastructure, controlPlanes)
	if err != nil {
		return nil, err
	}
	clusters, err := target.manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, obj := range all {
		if !slices.Contains(of.Kinds, obj.GetKind()) || !p.answered(obj) || !active(obj, clusters) {
			continue
		}
		identity, _, _ := unstructured.NestedMap(obj.Object, "spec", of.Identity)
		text, err := json.Marshal(identity) // its keys are in order
		if err != nil {
			return nil, err
		}
		if !seen[string(text)] {
			seen[string(text)] = true
			p.objects = append(p.objects, obj)
		}
	}
	if len(p.objects) == 0 {
		return nil, diag.Errorf("", "no cluster of this cloud is there that could tell")
	}
	leases := &coordinationv1.LeaseList{}
	if err := target.client.List(ctx, leases); err != nil {
		return nil, fmt.Errorf("list the Leases of %s: %w", target.Name, err)
	}
	for i := range leases.Items {
		if l := &leases.Items[i]; l.Name == of.Lease && l.Spec.HolderIdentity != nil {
			p.holders[kube.Key{Namespace: l.Namespace, Name: l.Name}] = *l.Spec.HolderIdentity
		}
	}
	return p, nil
}

// answered tells whether the last answer of the cloud about obj was good.
func (p *proof) answered(obj *unstructured.Unstructured) bool {
	return meta.IsStatusConditionTrue(kube.Conditions(obj), p.of.Condition)
}

// active tells whether the provider acts on obj, an object of a Cluster.
func active(obj *unstructured.Unstructured, clusters []capi.Cluster) bool {
	if _, paused := obj.GetAnnotations()["cluster.x-k8s.io/paused"]; paused || obj.GetDeletionTimestamp() != nil {
		return false
	}
	name := obj.GetLabels()["cluster.x-k8s.io/cluster-name"]
	return slices.ContainsFunc(clusters, func(c capi.Cluster) bool {
		return c.Namespace == obj.GetNamespace() && c.Name == name && !c.Paused && !c.Deleting
	})
}

// without takes the credential off, and gives it back if the provider does not reach its cloud without it, also after an interruption.
func (p *proof) without(ctx context.Context, takeOff, giveBack func(context.Context) error) error {
	err := takeOff(ctx)
	if err == nil {
		err = p.wait(ctx)
	}
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), provenWithin)
	defer cancel()
	return errors.Join(err, diag.Wrap("give it back", giveBack(ctx), "run `fleetctl init`, which gives it back"))
}

// wait returns nil when the provider has told for each object that the cloud answers, after it was asked again.
func (p *proof) wait(ctx context.Context) error {
	late := fmt.Errorf("%s does not tell of an answer within %s", p.of.Provider, provenWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, provenWithin, late)
	defer cancel()
	for key, before := range p.holders {
		err := p.client.WaitFor(ctx, leaseKind, key, func(lease *unstructured.Unstructured) (bool, error) {
			if lease == nil {
				return true, nil
			}
			now, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
			return now != before, nil
		})
		if err != nil {
			return err
		}
	}
	for _, obj := range p.objects {
		if err := p.forget(ctx, obj); err != nil {
			return err
		}
	}
	for _, obj := range p.objects {
		if err := p.told(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the condition from the object, which makes the controller look at the object and tell again.
func (p *proof) forget(ctx context.Context, obj *unstructured.Unstructured) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(obj.GroupVersionKind())
		if err := p.client.Get(ctx, kube.RefOf(obj).Key, now); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			fields, ok := c.(map[string]any)
			return ok && fields["type"] == p.of.Condition
		})
		if err := unstructured.SetNestedSlice(now.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		return p.client.Status().Update(ctx, now)
	})
	return diag.Wrap("have "+p.of.Provider+" look at "+kube.RefOf(obj).String(), err, "")
}

// told waits until the controller has told about obj again, and the cloud's answer was good.
func (p *proof) told(ctx context.Context, obj *unstructured.Unstructured) error {
	last := ""
	err := p.client.WaitFor(ctx, obj.GroupVersionKind(), kube.RefOf(obj).Key, func(now *unstructured.Unstructured) (bool, error) {
		if now == nil || now.GetDeletionTimestamp() != nil { // it tells nothing any more
			return true, nil
		}
		if c := meta.FindStatusCondition(kube.Conditions(now), p.of.Condition); c != nil && c.Message != "" {
			last = c.Message
		}
		return p.answered(now), nil
	})
	if err != nil && last != "" {
		return fmt.Errorf("%w: %.300s", err, last)
	}
	return err
}
