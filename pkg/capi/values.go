package capi

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// restartOwner owns restartMark, the annotation that restarts a Deployment. Its own field manager keeps a later apply from removing the
// mark, which would restart the Deployment again.
const (
	restartOwner = kube.FieldManager + "-restart"
	restartMark  = "fleetctl.dev/restarted-at"
)

// differs tells whether applying obj would change the object in the cluster.
func (m *Manager) differs(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	ref := kube.RefOf(obj)
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	if err := m.kube.Get(ctx, ref.Key, there); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("look at %s: %w", ref, err)
	}
	would := withAuthoritiesOf(there, obj)
	err := m.kube.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(would),
		client.FieldOwner(kube.FieldManager), client.ForceOwnership, client.DryRunAll)
	if err != nil {
		return false, fmt.Errorf("find out what would change in %s: %w", ref, err)
	}
	for _, o := range []*unstructured.Unstructured{there, would} {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
	}
	return !reflect.DeepEqual(there.Object, would.Object), nil
}

// readersOf returns the Deployments of components whose pods read one of objects when they start.
func readersOf(components repository.Components, objects []*unstructured.Unstructured) []kube.Key {
	var keys []kube.Key
	for _, obj := range components.Objs() {
		d := &appsv1.Deployment{}
		if obj.GroupVersionKind() != kube.DeploymentKind || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d) != nil {
			continue
		}
		reads := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetNamespace() == obj.GetNamespace() && slices.Contains(readBy(&d.Spec.Template.Spec), o.GetKind()+"/"+o.GetName())
		})
		if reads {
			keys = append(keys, kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()})
		}
	}
	return keys
}

// readBy returns the objects in its namespace that a pod reads only at its start: most programs read a mounted file once, and environment
// variables never change.
func readBy(pod *corev1.PodSpec) []string {
	names := []string{"ServiceAccount/" + pod.ServiceAccountName}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			names = append(names, "Secret/"+v.Secret.SecretName)
		}
		if v.ConfigMap != nil {
			names = append(names, "ConfigMap/"+v.ConfigMap.Name)
		}
		if v.Projected == nil {
			continue
		}
		for _, from := range v.Projected.Sources {
			if from.Secret != nil {
				names = append(names, "Secret/"+from.Secret.Name)
			}
			if from.ConfigMap != nil {
				names = append(names, "ConfigMap/"+from.ConfigMap.Name)
			}
		}
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				names = append(names, "Secret/"+from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				names = append(names, "ConfigMap/"+from.ConfigMapRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				names = append(names, "Secret/"+e.ValueFrom.SecretKeyRef.Name)
			}
			if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
				names = append(names, "ConfigMap/"+e.ValueFrom.ConfigMapKeyRef.Name)
			}
		}
	}
	return names
}
