package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// replicasMark is the annotation with the number of replicas that a Deployment had before the hand-over scaled it to 0.
const replicasMark = capi.ReplicasMark

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// halt scales Deployments to 0, and waits until their Pods are gone. An annotation on each Deployment keeps the number
// of replicas that it had.
func (s *side) halt(ctx context.Context, deployments []appsv1.Deployment, detail func(string)) error {
	for _, d := range deployments {
		replicas := int32(1)
		if d.Spec.Replicas != nil {
			replicas = *d.Spec.Replicas
		}
		if replicas == 0 {
			continue
		}
		if noted, ok := d.Annotations[replicasMark]; ok { // somebody has started the Deployment again: keep the first number
			if n, err := strconv.ParseInt(noted, 10, 32); err == nil {
				replicas = int32(n)
			}
		}
		if err := s.scale(ctx, d, strconv.Itoa(int(replicas)), 0); err != nil {
			return err
		}
	}
	var group errgroup.Group
	for _, d := range deployments {
		group.Go(func() error { return s.waitHalted(ctx, d) })
	}
	detail("waiting for " + plain.Count(len(deployments), "controller") + " to stop")
	return group.Wait()
}

// scale sets a Deployment's replicas and its annotation with the former number in one write. noted is the former
// number, or nil to remove the annotation.
func (s *side) scale(ctx context.Context, d appsv1.Deployment, noted any, replicas int32) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{replicasMark: noted}},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return err
	}
	err = kube.Retry(ctx, func(ctx context.Context) error {
		obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
		return s.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager))
	})
	if err != nil {
		return fmt.Errorf("scale Deployment %s/%s to %d: %w", d.Namespace, d.Name, replicas, err)
	}
	return nil
}

// waitHalted waits until a Deployment that was scaled to 0 has neither replicas nor Pods.
func (s *side) waitHalted(ctx context.Context, d appsv1.Deployment) error {
	key := kube.Key{Namespace: d.Namespace, Name: d.Name}
	err := s.Client.WaitFor(ctx, deploymentKind, key, func(obj *unstructured.Unstructured) (bool, error) {
		if obj == nil {
			return true, nil
		}
		seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		left, _, _ := unstructured.NestedInt64(obj.Object, "status", "replicas")
		return seen >= obj.GetGeneration() && left == 0, nil
	})
	if err != nil || d.Spec.Selector == nil {
		return err
	}
	err = s.Client.Watch(ctx, corev1.SchemeGroupVersion.WithKind("Pod"),
		kube.Selection{Namespace: d.Namespace, Labels: d.Spec.Selector.MatchLabels}, func(pods kube.Objects) (bool, error) {
			for _, pod := range pods {
				if labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(labels.Set(pod.GetLabels())) {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("wait until the Pods of Deployment %s are gone: %w", key, err)
	}
	return nil
}

// start gives the stopped Deployments their former replicas, and waits until they are ready.
func (s *side) start(ctx context.Context, detail func(string)) error {
	all, err := s.deployments(ctx)
	if err != nil {
		return err
	}
	return s.startThese(ctx, all, detail)
}

// deployments returns all Deployments that a hand-over may stop.
func (s *side) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	deployments, err := s.manager.ProviderDeployments(ctx)
	if err != nil {
		return nil, err
	}
	injectors, err := s.manager.Injectors(ctx)
	if err != nil {
		return nil, err
	}
	fluxes, err := flux.NewSystem(s.Client).Deployments(ctx)
	return slices.Concat(deployments, injectors, fluxes), err
}

// startThese is start for the given Deployments.
func (s *side) startThese(ctx context.Context, deployments []appsv1.Deployment, detail func(string)) error {
	started, err := s.scaleBack(ctx, deployments)
	if err != nil || len(started) == 0 {
		return err
	}
	return s.Client.WaitDeploymentsReady(ctx, started, detail)
}

// scaleBack gives those of the Deployments that a hand-over has stopped their former replicas. It does not wait.
func (s *side) scaleBack(ctx context.Context, deployments []appsv1.Deployment) (started []kube.Key, err error) {
	var errs []error
	for _, d := range deployments {
		noted, ok := d.Annotations[replicasMark]
		if !ok {
			continue
		}
		replicas, err := strconv.ParseInt(noted, 10, 32)
		if err != nil {
			errs = append(errs, fmt.Errorf("start Deployment %s/%s: its annotation %s is %q", d.Namespace, d.Name, replicasMark, noted))
			continue
		}
		errs = append(errs, s.scale(ctx, d, nil, int32(replicas)))
		started = append(started, kube.Key{Namespace: d.Namespace, Name: d.Name})
	}
	return started, errors.Join(errs...)
}
