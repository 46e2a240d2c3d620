package runner

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// notRun are the kinds that run programs in a cluster with nodes, but not on an embedded host.
func notRun() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"), batchv1.SchemeGroupVersion.WithKind("CronJob"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	}
}

// tellOfOthers makes a warning event for each object of these kinds, because nothing will start it.
func (r *Runner) tellOfOthers(ctx context.Context) error {
	for _, kind := range notRun() {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		informer, err := r.manager.GetCache().GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %ss: %w", kind.Kind, err)
		}
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(added any) {
			if o, ok := added.(metav1.Object); ok && o.GetDeletionTimestamp() == nil {
				r.tellNotRun(kind, o)
			}
		}})
		if err != nil {
			return fmt.Errorf("watch %ss: %w", kind.Kind, err)
		}
	}
	return nil
}

func (r *Runner) tellNotRun(kind schema.GroupVersionKind, o metav1.Object) {
	about := &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
	r.recorder.Eventf(about, nil, corev1.EventTypeWarning, "NotSupported", "Run",
		"%s %s/%s is not started: the embedded host runs Deployments only; use --host kind", kind.Kind, o.GetNamespace(), o.GetName())
}
