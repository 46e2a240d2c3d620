package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// DeploymentKind is the kind of Deployments.
var DeploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// Unready is an object that is not ready.
type Unready struct {
	Ref
	// Reason comes from the object's conditions, pods and events. It is "" if these give none.
	Reason string
}

// String names the object with its reason, which the String of its Ref would leave out.
func (u Unready) String() string {
	if u.Reason == "" {
		return u.Ref.String() + " is not ready"
	}
	return u.Ref.String() + ": " + u.Reason
}

// NotReadyError lists the objects that are not ready.
type NotReadyError []Unready

// Error names each object with its reason.
func (e NotReadyError) Error() string {
	parts := make([]string, 0, len(e))
	for _, u := range e {
		part := u.Ref.String() + " is not ready"
		if u.Reason != "" {
			part += " (" + u.Reason + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// explainEvery is the time until a wait first looks for reasons, and then between two looks.
const explainEvery = 5 * time.Second

// WaitDeploymentsReady waits until all the named Deployments have rolled out their spec and are available. If detail is not nil, several
// goroutines call it: when the list of missing Deployments changes, and later also with the reasons. If ctx's deadline comes first, the
// error matches NotReadyError and ctx's cause, and has the exit code diag.ExitNotReady.
func (c *Client) WaitDeploymentsReady(ctx context.Context, keys []Key, detail func(string)) error {
	missing := newPending(keys, detail)
	if detail != nil {
		explainCtx, stop := context.WithCancel(ctx)
		explained := make(chan struct{})
		go func() {
			defer close(explained)
			c.explainPending(explainCtx, missing)
		}()
		defer func() {
			stop()
			<-explained
		}()
	}
	group, watchCtx := errgroup.WithContext(ctx)
	for _, namespace := range namespacesOf(keys) {
		group.Go(func() error {
			return c.Watch(watchCtx, DeploymentKind, Selection{Namespace: namespace}, func(objects Objects) (bool, error) {
				left := 0
				for _, key := range keys {
					if key.Namespace != namespace {
						continue
					}
					ready := DeploymentReady(objects[key])
					missing.set(key, ready)
					if !ready {
						left++
					}
				}
				return left == 0, nil
			})
		})
	}
	err := group.Wait()
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		return fmt.Errorf("wait for Deployments: %w", err)
	}
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) { // after an interruption nobody needs the reasons
		return fmt.Errorf("wait for Deployments: %w", context.Cause(ctx))
	}
	unready := c.explainDeployments(context.WithoutCancel(ctx), missing.list()) // ctx has ended
	if len(unready) == 0 {
		return fmt.Errorf("wait for Deployments: %w", context.Cause(ctx))
	}
	return &diag.Error{
		Op: "wait for Deployments", Err: fmt.Errorf("%w: %w", context.Cause(ctx), unready), Code: diag.ExitNotReady,
	}
}

// DeploymentReady tells whether obj, a Deployment, has rolled out its newest spec and is available. It returns false for nil.
func DeploymentReady(obj *unstructured.Unstructured) bool {
	if obj == nil {
		return false
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &d); err != nil {
		return false
	}
	if d.Status.ObservedGeneration < d.Generation || d.DeletionTimestamp != nil {
		return false
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	if d.Status.UpdatedReplicas < wanted || d.Status.AvailableReplicas < wanted {
		return false
	}
	return wanted == 0 || slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// explainPending reports every explainEvery why Deployments are not ready, until ctx ends.
func (c *Client) explainPending(ctx context.Context, missing *pending) {
	tick := time.NewTicker(explainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, u := range c.explainDeployments(ctx, missing.list()) {
			if u.Reason != "" && ctx.Err() == nil {
				missing.explain(u.Key, u.Reason)
			}
		}
	}
}

// explainDeployments returns the Deployments that are not ready, with the reasons.
func (c *Client) explainDeployments(ctx context.Context, keys []Key) NotReadyError {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	unready := make(NotReadyError, len(keys))
	var group errgroup.Group
	group.SetLimit(parallelism)
	for i, key := range keys {
		group.Go(func() error {
			unready[i].Ref = Ref{DeploymentKind, key}
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(DeploymentKind)
			switch err := c.Get(ctx, key, obj); {
			case err == nil && DeploymentReady(obj): // ready by now
				unready[i].Ref = Ref{}
			case err == nil:
				unready[i].Reason = c.Explain(ctx, obj)
			case IsAbsent(err):
				unready[i].Reason = c.Explain(ctx, nil)
			}
			return nil
		})
	}
	_ = group.Wait() // no task returns an error: an unreadable reason stays empty
	return slices.DeleteFunc(unready, func(u Unready) bool { return u.Ref == Ref{} })
}

func namespacesOf(keys []Key) []string {
	var namespaces []string
	for _, key := range keys {
		namespaces = append(namespaces, key.Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// DeploymentKeys returns the keys of the Deployments among objects.
func DeploymentKeys(objects []*unstructured.Unstructured) []Key {
	var keys []Key
	for _, obj := range objects {
		if obj.GroupVersionKind() == DeploymentKind {
			keys = append(keys, Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		}
	}
	return keys
}
