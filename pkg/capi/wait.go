package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

var clusterKind = clusterv1.GroupVersion.WithKind("Cluster")

// WaitAvailable waits until the named Clusters are Available, or all existing Clusters if none are named. It does not wait for those
// that somebody has paused: Cluster API does not judge them, so after a hand-over they do not become Available before they are resumed. A
// Cluster counts only after its controller has connected to the workload cluster since the Cluster's spec changed, for example by a
// hand-over. It calls detail, if not nil, when the reasons change. If ctx ends first, the error matches kube.NotReadyError, has a reason
// for each Cluster, and has the exit code diag.ExitNotReady.
func (m *Manager) WaitAvailable(ctx context.Context, clusters []kube.Key, detail func(string)) error {
	var unready kube.NotReadyError
	tell := onChange(detail)
	err := m.kube.Watch(ctx, clusterKind, kube.Selection{}, func(objects kube.Objects) (bool, error) {
		unready = unavailableOf(objects, unpausedOf(objects, clusters))
		if len(unready) > 0 {
			tell("waiting for " + unready.Error())
		}
		return len(unready) == 0, nil
	})
	return waitError(ctx, "wait for workload clusters", err, unready)
}

// unavailableOf returns those of the Clusters that are not Available, and why.
func unavailableOf(objects kube.Objects, clusters []kube.Key) kube.NotReadyError {
	var unready kube.NotReadyError
	for _, key := range clusters {
		if reason := unavailable(objects[key]); reason != "" {
			unready = append(unready, kube.Unready{Ref: kube.Ref{GroupVersionKind: clusterKind, Key: key}, Reason: reason})
		}
	}
	return unready
}

// unpausedOf returns those of the Clusters, or of all existing ones if none are named, that are not paused, or do not exist.
func unpausedOf(objects kube.Objects, clusters []kube.Key) []kube.Key {
	if len(clusters) == 0 {
		clusters = keysOfAll(objects)
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(key kube.Key) bool {
		obj := objects[key]
		if obj == nil {
			return false
		}
		cluster, err := toCluster(obj)
		return err == nil && isPaused(cluster)
	})
}

// unavailable returns why obj, a Cluster or nil, is not Available, or "".
func unavailable(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "it does not exist yet"
	}
	cluster, err := toCluster(obj)
	if err != nil {
		return err.Error()
	}
	if available, reason := availability(cluster); !available {
		return reason
	}
	if !connected(cluster) {
		return "Cluster API has not connected to it yet"
	}
	return ""
}

// connected tells whether the Cluster's controller has tried its connection to the workload cluster since the Cluster's spec changed. A
// controller that starts, or that gets a Cluster by a hand-over, leaves the condition RemoteConnectionProbe as it finds it until it has
// connected, but writes all other conditions at its first look: from what the earlier controllers found. That the Cluster is Available may
// then be an old finding, which the first true look takes back. A Cluster without the condition passes: Available says all there is.
func connected(c *clusterv1.Cluster) bool {
	probe := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterRemoteConnectionProbeCondition)
	return probe == nil || probe.ObservedGeneration >= c.Generation
}

// DeleteClusters deletes the named Clusters in parallel. It waits until they and all their objects are gone. A missing Cluster is no error.
// It calls detail, if not nil, when the reasons for waiting change. If ctx ends first, the error matches kube.NotReadyError and says what
// blocks each Cluster.
func (m *Manager) DeleteClusters(ctx context.Context, clusters []kube.Key, detail func(string)) error {
	var errs []error
	for _, key := range clusters {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(clusterKind)
		obj.SetNamespace(key.Namespace)
		obj.SetName(key.Name)
		err := m.kube.WithWatch.Delete(ctx, obj, client.PropagationPolicy("Background"))
		if err != nil && !kube.IsAbsent(err) {
			errs = append(errs, fmt.Errorf("delete Cluster %s: %w", key, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var left kube.NotReadyError
	tell := onChange(detail)
	err := m.kube.Watch(ctx, clusterKind, kube.Selection{}, func(objects kube.Objects) (bool, error) {
		left = left[:0]
		for _, key := range clusters {
			if obj := objects[key]; obj != nil {
				left = append(left, kube.Unready{Ref: kube.Ref{GroupVersionKind: clusterKind, Key: key}, Reason: blocker(obj)})
			}
		}
		if len(left) > 0 {
			tell(fmt.Sprintf("waiting until %d of %s %s deleted: %s", len(left), plain.Count(len(clusters), "cluster"),
				plain.Are(len(clusters)), describe(left)))
		}
		return len(left) == 0, nil
	})
	return waitError(ctx, "delete workload clusters", m.absent(ctx, err), left)
}

// blocker returns what keeps a Cluster that is being deleted.
func blocker(obj *unstructured.Unstructured) string {
	cluster, err := toCluster(obj)
	if err != nil {
		return err.Error()
	}
	if isPaused(cluster) {
		return "it is paused, so Cluster API does not delete it"
	}
	_, reason := availability(cluster)
	return reason
}

func describe(left kube.NotReadyError) string {
	parts := make([]string, 0, len(left))
	for _, u := range left {
		parts = append(parts, u.Key.String()+" ("+u.Reason+")")
	}
	return strings.Join(parts, "; ")
}

// waitError returns err. If ctx has ended, it adds the objects that are not ready.
func waitError(ctx context.Context, op string, err error, missing kube.NotReadyError) error {
	if err == nil || ctx.Err() == nil || len(missing) == 0 {
		return diag.Wrap(op, err, "")
	}
	return &diag.Error{Op: op, Err: fmt.Errorf("%w: %w", context.Cause(ctx), missing), Code: diag.ExitNotReady}
}

func toCluster(obj *unstructured.Unstructured) (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, cluster); err != nil {
		return nil, fmt.Errorf("read %s: %w", kube.RefOf(obj), err)
	}
	return cluster, nil
}

func keysOfAll(objects kube.Objects) []kube.Key {
	keys := make([]kube.Key, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// onChange returns a function that passes texts on to detail, except repetitions of the last text.
func onChange(detail func(string)) func(string) {
	last := ""
	return func(text string) {
		if detail != nil && text != last {
			last = text
			detail(text)
		}
	}
}

// keepAnnotation keeps Helm from deleting an object.
const keepAnnotation = "helm.sh/resource-policy"

// WaitUnprotected waits until the release that made a Cluster can delete it, or until the Cluster is gone. It calls detail, if not nil,
// when the reason for waiting changes.
func (m *Manager) WaitUnprotected(ctx context.Context, cluster kube.Key, detail func(string)) error {
	return m.waitCluster(ctx, "wait until the cluster is unprotected", cluster, detail, func(obj *unstructured.Unstructured) string {
		if _, kept := obj.GetAnnotations()[keepAnnotation]; kept {
			return "it is still protected"
		}
		return ""
	})
}

// WaitGone waits until a Cluster and all its objects are gone. It calls detail, if not nil, when the reason for waiting changes.
func (m *Manager) WaitGone(ctx context.Context, cluster kube.Key, detail func(string)) error {
	return m.waitCluster(ctx, "wait until the cluster is deleted", cluster, detail, func(obj *unstructured.Unstructured) string {
		if obj.GetDeletionTimestamp().IsZero() {
			return "its deletion has not begun"
		}
		return blocker(obj)
	})
}

// waitCluster waits until a Cluster is gone, or until reason returns "" for it.
func (m *Manager) waitCluster(
	ctx context.Context,
	op string,
	cluster kube.Key,
	detail func(string),
	reason func(*unstructured.Unstructured) string,
) error {
	var left kube.NotReadyError
	tell := onChange(detail)
	err := m.kube.Watch(ctx, clusterKind, kube.Selection{Namespace: cluster.Namespace, Name: cluster.Name},
		func(objects kube.Objects) (bool, error) {
			left = left[:0]
			if obj := objects[cluster]; obj != nil {
				if why := reason(obj); why != "" {
					left = append(left, kube.Unready{Ref: kube.Ref{GroupVersionKind: clusterKind, Key: cluster}, Reason: why})
					tell(why)
				}
			}
			return len(left) == 0, nil
		})
	return waitError(ctx, op, m.absent(ctx, err), left)
}
