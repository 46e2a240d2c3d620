package flux

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// WorkloadLabel marks Flux objects of the management cluster that install Flux on the workload cluster of their namespace, or apply what
// Flux would apply there. Its value is one of WorkloadParts.
const WorkloadLabel = "fleetctl.dev/flux"

// WorkloadParts are the values of WorkloadLabel. Each of the first four waits for the ones before it: the network, Flux itself, its
// source if that is separate, and the sync. The last is for the apps of a cluster without Flux.
func WorkloadParts() []string { return []string{"cni", componentsPart, "source", syncPart, "apps"} }

// componentsPart is the workload cluster's own Flux.
const componentsPart = "components"

// syncPart is what lets the workload cluster's own Flux apply its apps.
const syncPart = "sync"

// WaitWorkloads waits until every object with the WorkloadLabel is Ready, which means that Flux has applied its first revision on every
// workload cluster that gets Flux. It does not wait for suspended objects, for those of a workload cluster whose Flux itself is suspended,
// nor for those in the namespaces without, where no Flux can arrive. detail, if not nil, is called with the missing objects. If ctx ends
// first, the error has a kube.NotReadyError and the exit code diag.ExitNotReady.
func (s *System) WaitWorkloads(ctx context.Context, without []string, detail func(string)) error {
	var unready kube.NotReadyError
	told := ""
	err := s.client.Watch(ctx, kustomizationKind, kube.Selection{}, func(objects kube.Objects) (bool, error) {
		unready = unreadyWorkloads(objects, without)
		if text := unready.Error(); len(unready) > 0 && text != told && detail != nil {
			told = text
			detail("waiting for " + text)
		}
		return len(unready) == 0, nil
	})
	if err == nil || ctx.Err() == nil || len(unready) == 0 {
		return diag.Wrap("wait for Flux on the workload clusters", err, "")
	}
	return &diag.Error{
		Op: "wait for Flux on the workload clusters", Err: fmt.Errorf("%w: %w", context.Cause(ctx), unready),
		Hint: "`fleetctl status` shows what holds them", Code: diag.ExitNotReady,
	}
}

// unreadyWorkloads returns the objects with the label that are not Ready, except in the namespaces without. For each other namespace it
// returns only the one that the others wait for.
func unreadyWorkloads(objects kube.Objects, without []string) kube.NotReadyError {
	var missing kube.NotReadyError
	held := map[string]bool{} // the namespaces of paused clusters: what a pause leaves running there waits for the rest
	for key, obj := range objects {
		suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
		held[key.Namespace] = held[key.Namespace] || suspended && obj.GetLabels()[WorkloadLabel] == componentsPart
	}
	for key, obj := range objects {
		if workloadPart(obj) < 0 || held[key.Namespace] || slices.Contains(without, key.Namespace) {
			continue
		}
		if reason := workloadReason(obj); reason != "" {
			missing = append(missing, kube.Unready{Ref: kube.Ref{GroupVersionKind: kustomizationKind, Key: key}, Reason: reason})
		}
	}
	missing = world{kustomizationKind: objects}.firstParts(missing)
	slices.SortFunc(missing, func(a, b kube.Unready) int { return cmp.Compare(a.String(), b.String()) })
	return missing
}

// firstParts leaves out the missing objects of a workload cluster that wait for another one of the same cluster.
func (w world) firstParts(missing kube.NotReadyError) kube.NotReadyError {
	part := func(m kube.Unready) int { return workloadPart(w[m.Ref.GroupVersionKind][m.Ref.Key]) }
	first := map[string]int{}
	for _, m := range missing {
		if p := part(m); p >= 0 {
			if there, ok := first[m.Ref.Namespace]; !ok || p < there {
				first[m.Ref.Namespace] = p
			}
		}
	}
	return slices.DeleteFunc(missing, func(m kube.Unready) bool { return part(m) > first[m.Ref.Namespace] })
}

// workloadPart is the place of an object among WorkloadParts; -1 if it is none of them.
func workloadPart(obj *unstructured.Unstructured) int {
	if obj == nil {
		return -1
	}
	return slices.Index(WorkloadParts(), obj.GetLabels()[WorkloadLabel])
}

func workloadReason(obj *unstructured.Unstructured) string {
	o, err := objectOf(obj)
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	if o.Spec.Suspend {
		return ""
	}
	return o.ready()
}

// WaitUnprotected waits until Flux deletes a HelmRelease that leaves its source, or the release is gone. Until then Flux would keep such a
// release, and with it all that the release has made. detail, if not nil, is told what is missing.
func (s *System) WaitUnprotected(ctx context.Context, release kube.Key, detail func(string)) error {
	told := false
	err := s.client.WaitFor(ctx, helmReleaseKind, release, func(obj *unstructured.Unstructured) (bool, error) {
		kept := obj != nil && protected(obj)
		if kept && !told && detail != nil {
			told = true
			detail("HelmRelease " + release.String() + " is still protected")
		}
		return !kept, nil
	})
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("wait until the HelmRelease is no longer protected: %w", err)
	}
	return nil
}

// Protected tells whether there is a HelmRelease that Flux keeps when it leaves its source.
func (s *System) Protected(ctx context.Context, release kube.Key) (bool, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(helmReleaseKind)
	err := s.client.Get(ctx, release, obj)
	if kube.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at HelmRelease %s: %w", release, err)
	}
	return protected(obj), nil
}

func protected(release *unstructured.Unstructured) bool {
	return release.GetAnnotations()[pruneAnnotation] == kustomizev1.DisabledValue
}

// WaitForgotten waits until a namespace has no Kustomization and no HelmRelease any more. The workload cluster of the namespace must no
// longer exist: WaitForgotten removes the finalizer of an object that is being deleted and has nothing left to delete.
func (s *System) WaitForgotten(ctx context.Context, namespace string, detail func(string)) error {
	for _, gvk := range workers() {
		err := s.client.Watch(ctx, gvk, kube.Selection{Namespace: namespace}, func(objects kube.Objects) (bool, error) {
			left := 0
			for _, obj := range objects {
				if _, is := obj.GetAnnotations()[letGoAnnotation]; is {
					continue // deleted with the namespace
				}
				left++
				if err := s.release(ctx, obj); err != nil {
					return false, err
				}
			}
			if left > 0 && detail != nil {
				detail(fmt.Sprintf("waiting for Flux to let go of %s of the kind %s", plain.Count(left, "object"), gvk.Kind))
			}
			return left == 0, nil
		})
		if err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("wait for Flux to let go of the namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// release removes Flux's finalizer from a Kustomization that is being deleted without pruning. kustomize-controller would do the same,
// but only after its present request to the dead API server has timed out.
func (s *System) release(ctx context.Context, obj *unstructured.Unstructured) error {
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "deletionPolicy")
	finalizers := obj.GetFinalizers()
	if obj.GetDeletionTimestamp() == nil || policy != kustomizev1.DeletionPolicyOrphan ||
		!slices.Contains(finalizers, kustomizev1.KustomizationFinalizer) {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool { return name == kustomizev1.KustomizationFinalizer })
	ref := kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	// With the resource version that was read: if the object has changed, the patch fails, and the watch delivers the change.
	err := s.patch(ctx, ref, map[string]any{"metadata": map[string]any{"finalizers": others, "resourceVersion": obj.GetResourceVersion()}})
	if err != nil && !gone(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("let go of %s: %w", ref, err)
	}
	return nil
}
