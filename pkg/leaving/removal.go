package leaving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// DeleteTimeout bounds the deletion of the workload clusters: machines in a cloud take their time.
const DeleteTimeout = 30 * time.Minute

// RemovalOptions say for which cluster's removal to wait, and how long. A Timeout of 0 leaves only the time limit of
// each step.
type RemovalOptions struct {
	// Client of the management cluster, from its management.Target. The caller makes it before it commits the step, so
	// that nothing is committed if the management cluster cannot be reached, or belongs to another fleet.
	Client  *kube.Client
	Cluster fleetrepo.Cluster
	Timeout time.Duration
}

// AwaitUnprotected waits until Flux has applied the first step of `fleetctl cluster remove`: the cluster has lost its protection, or does
// not exist. The second step must not be committed before that: Flux would see both steps at once, keep the cluster, and forget it. When
// the time is over before, the error says what is still protected (exit code of something not ready).
func AwaitUnprotected(ctx context.Context, deps management.Deps, o RemovalOptions) error {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return steps.Run(ctx, deps.Report, []steps.Step{{
		Name: "wait for Flux to take the protection away", Run: func(ctx context.Context, detail func(string)) error {
			if err := flux.NewSystem(o.Client).Reconcile(ctx); err != nil {
				return err
			}
			return waitUnprotected(ctx, o.Client, kube.Key{Namespace: o.Cluster.Name, Name: o.Cluster.Name}, detail)
		}, Timeout: 15 * time.Minute, Hint: "`fleetctl status` shows what Flux has applied",
	}})
}

// waitUnprotected waits until neither Flux nor Helm keeps a cluster that leaves Git. A cluster that does not exist needs no wait: after
// `fleetctl cluster detach` its release is suspended, and nobody works on it.
func waitUnprotected(ctx context.Context, client *kube.Client, key kube.Key, detail func(string)) error {
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	if err := manager.WaitUnprotected(ctx, key, detail); err != nil {
		return err
	}
	if cluster, err := manager.Cluster(ctx, key); err != nil || cluster == nil {
		return err
	}
	return flux.NewSystem(client).WaitUnprotected(ctx, key, detail)
}

// Unfinished tells whether the management cluster still has something of a cluster that the fleet repo no longer
// declares: a namespace that the fleet repo has made, and no release that Flux would keep. A release that Flux would
// keep means that Flux does not follow this clone, or that nobody has removed the cluster's protection.
func Unfinished(ctx context.Context, client *kube.Client, name string) (bool, error) {
	namespace, err := namespaceOf(ctx, client, name)
	if err != nil || namespace == nil || !madeByFleet(namespace) {
		return false, err
	}
	kept, err := flux.NewSystem(client).Protected(ctx, kube.Key{Namespace: name, Name: name})
	return !kept, err
}

// namespaceOf returns a namespace; nil if it does not exist.
func namespaceOf(ctx context.Context, client *kube.Client, name string) (*unstructured.Unstructured, error) {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := client.Get(ctx, kube.Key{Name: name}, namespace)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the namespace %s: %w", name, err)
	}
	return namespace, nil
}

// madeByFleet tells whether the fleet repo has made a namespace.
func madeByFleet(namespace *unstructured.Unstructured) bool {
	return strings.HasPrefix(namespace.GetLabels()[flux.AppliedBy], "clusters-")
}

// AwaitRemoval waits until the second step of `fleetctl cluster remove`, committed and pushed, is done: Cluster API has
// deleted everything that the cluster had. Then it deletes the namespace, which nothing needs any more. If the time
// runs out, the error says what holds the cluster (exit code of something not ready).
func AwaitRemoval(ctx context.Context, deps management.Deps, o RemovalOptions) error {
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	manager, err := capi.New(o.Client)
	if err != nil {
		return err
	}
	system := flux.NewSystem(o.Client)
	key := kube.Key{Namespace: o.Cluster.Name, Name: o.Cluster.Name}
	return steps.Run(ctx, deps.Report, []steps.Step{
		{
			Name: "wait for the cluster to go", Run: func(ctx context.Context, detail func(string)) error {
				if err := system.Reconcile(ctx); err != nil {
					return err
				}
				return manager.WaitGone(ctx, key, detail)
			}, Timeout: DeleteTimeout, Hint: "`fleetctl status` shows what delays it; run the same command again to continue",
		},
		{
			Name: "delete its namespace", Needs: []string{"wait for the cluster to go"}, Timeout: 10 * time.Minute,
			Run: func(ctx context.Context, detail func(string)) error {
				if err := system.WaitForgotten(ctx, key.Namespace, detail); err != nil {
					return err
				}
				if err := checkEmptied(ctx, manager, key.Namespace); err != nil {
					return err
				}
				return deleteNamespace(ctx, o.Client, key.Namespace)
			},
		},
	})
}

// checkEmptied looks once more before a namespace is deleted with everything in it. Somebody may have declared a
// cluster there again, or made another one.
func checkEmptied(ctx context.Context, manager *capi.Manager, namespace string) error {
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return diag.Wrap("look whether the namespace "+namespace+" is empty", err, "")
	}
	clusters = slices.DeleteFunc(clusters, func(c capi.Cluster) bool { return c.Namespace != namespace })
	if len(clusters) == 0 {
		return nil
	}
	return diag.Errorf("if they are not wanted, remove them first and run the same command again",
		"the namespace %s is kept: workload clusters have appeared in it: %s", namespace, strings.Join(management.FullNames(clusters), ", "))
}

// deleteNamespace deletes the namespace of a deleted cluster, if the fleet repo made this namespace.
func deleteNamespace(ctx context.Context, client *kube.Client, name string) error {
	namespace, err := namespaceOf(ctx, client, name)
	if err != nil {
		return err
	}
	if namespace == nil {
		return steps.NothingToDo("it is deleted already")
	}
	if !madeByFleet(namespace) {
		return steps.NothingToDo("the fleet repo did not make it")
	}
	return client.Delete(ctx, []*unstructured.Unstructured{namespace}, kube.DeleteOptions{Wait: true})
}
