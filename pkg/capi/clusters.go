package capi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/graph"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Cluster is the state of one workload cluster in Cluster API.
type Cluster struct {
	Namespace, Name string
	// Phase is Pending, Provisioning, Provisioned, Deleting or Failed.
	Phase string
	// Version is the Kubernetes version in its topology or control plane, if known.
	Version string
	// Available is Cluster API's own summary. Reason says why the cluster is not Available.
	Available bool
	Reason    string
	// Troubles are the faults that its current conditions report, one for each cause. There are none while the cluster is Available, paused or
	// being deleted.
	Troubles []kube.Trouble
	// RollingOut describes the change that is being rolled out, such as the replacement of machines. It is "" if there is none.
	RollingOut string
	// Paused means that Cluster API does not act on the cluster. Deleting means that the cluster is being deleted.
	Paused, Deleting bool
	// Initialized means that the control plane has been initialized: the cluster has an API server.
	Initialized bool
	// Owner is the management cluster since the last hand-over. It is the zero value if there was none.
	Owner Owner
	// OwnerDamaged means that the Cluster has a record of its owner which names none.
	OwnerDamaged bool
	// Endpoint is the address of its API server, HOST:PORT, or "" if it has none yet.
	Endpoint string
	// Infrastructure and ControlPlane are the kinds of its infrastructure and control plane: DockerCluster, KubeadmControlPlane.
	Infrastructure, ControlPlane string
	ControlPlaneReplicas         Replicas
	// ControlPlaneVersions are the versions of its control plane: several during an upgrade, none if it does not report them.
	ControlPlaneVersions []string
	WorkerReplicas       Replicas
	Conditions           []metav1.Condition
	Machines             []Machine
}

// Key returns the namespace and name of the Cluster.
func (c Cluster) Key() kube.Key { return kube.Key{Namespace: c.Namespace, Name: c.Name} }

// FullName returns NAMESPACE/NAME.
func (c Cluster) FullName() string { return c.Key().String() }

// Unbegun tells whether the Cluster has been paused since before its control plane was initialized. Cluster API makes nothing of such a
// Cluster, so no API server of it will answer before somebody resumes it.
func (c Cluster) Unbegun() bool {
	return c.Paused && !apimeta.IsStatusConditionTrue(c.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
}

// Replicas counts machines.
type Replicas struct {
	Desired, Current, Ready, Available, UpToDate int32
}

// Machine is one machine of a Cluster.
type Machine struct {
	Name, Node, Version, Phase string
	ControlPlane               bool
	Ready                      bool
	Reason                     string
}

// Clusters returns all workload clusters with their machines, sorted by namespace and name. If Cluster API was never installed, there are
// none. If it was, but the API server does not serve its kinds, the error is an *UntoldError.
func (m *Manager) Clusters(ctx context.Context) ([]Cluster, error) {
	clusters, machines := &clusterv1.ClusterList{}, &clusterv1.MachineList{}
	var untold error
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.listAll(ctx, "Clusters", clusters) })
	group.Go(func() error {
		err := m.listAll(ctx, "Machines", machines)
		if _, is := errors.AsType[*UntoldError](err); is {
			untold = err
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if untold != nil && len(clusters.Items) > 0 { // an installation that was killed between its CRDs serves Clusters, but has none
		return nil, untold
	}
	byCluster := map[kube.Key][]Machine{}
	for i := range machines.Items {
		machine := &machines.Items[i]
		key := kube.Key{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
		byCluster[key] = append(byCluster[key], machineFrom(machine))
	}
	all := make([]Cluster, 0, len(clusters.Items))
	for i := range clusters.Items {
		cluster := clusterFrom(&clusters.Items[i])
		cluster.Machines = byCluster[cluster.Key()]
		slices.SortFunc(cluster.Machines, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, cluster)
	}
	slices.SortFunc(all, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Cluster returns one workload cluster without its machines, or nil if it does not exist.
func (m *Manager) Cluster(ctx context.Context, key kube.Key) (*Cluster, error) {
	found := &clusterv1.Cluster{}
	err := m.kube.Get(ctx, key, found)
	switch {
	case err == nil:
		cluster := clusterFrom(found)
		return &cluster, nil
	case kube.IsObjectAbsent(err):
		return nil, nil
	}
	if err := m.absent(ctx, err); err != nil {
		return nil, fmt.Errorf("look at Cluster %s: %w", key, err)
	}
	return nil, nil
}

// HasClusterKind tells whether the API server serves Cluster API's Clusters. Without the kind, an empty list of Clusters proves nothing.
func (m *Manager) HasClusterKind(ctx context.Context) (bool, error) {
	err := m.kube.List(ctx, &clusterv1.ClusterList{})
	if kube.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether Cluster API is installed: %w", err)
	}
	return true, nil
}

// listAll fills list. The list stays empty if Cluster API was never installed. See absent.
func (m *Manager) listAll(ctx context.Context, what string, list kube.ObjectList) error {
	err := m.kube.List(ctx, list)
	if err == nil {
		return nil
	}
	if err := m.absent(ctx, err); err != nil {
		return fmt.Errorf("list %s: %w", what, err)
	}
	return nil
}

func clusterFrom(c *clusterv1.Cluster) Cluster {
	cluster := Cluster{
		Namespace: c.Namespace, Name: c.Name, Phase: c.Status.Phase,
		Deleting:       !c.DeletionTimestamp.IsZero(),
		Paused:         isPaused(c),
		Initialized:    c.Status.Initialization.ControlPlaneInitialized != nil && *c.Status.Initialization.ControlPlaneInitialized,
		Infrastructure: c.Spec.InfrastructureRef.Kind,
		ControlPlane:   c.Spec.ControlPlaneRef.Kind,
		Version:        c.Spec.Topology.Version,
		Conditions:     c.Status.Conditions,
		Owner:          OwnerIn(c.Annotations),
		OwnerDamaged:   graph.OwnerDamaged(c.Annotations),
	}
	if at := c.Spec.ControlPlaneEndpoint; at.Host != "" {
		cluster.Endpoint = net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))
	}
	if cp := c.Status.ControlPlane; cp != nil {
		cluster.ControlPlaneReplicas = replicasFrom(cp.DesiredReplicas, cp.Replicas, cp.ReadyReplicas, cp.AvailableReplicas, cp.UpToDateReplicas)
		for _, v := range cp.Versions {
			cluster.ControlPlaneVersions = append(cluster.ControlPlaneVersions, v.Version)
		}
		if cluster.Version == "" && len(cp.Versions) > 0 {
			cluster.Version = cp.Versions[0].Version
		}
	}
	if w := c.Status.Workers; w != nil {
		cluster.WorkerReplicas = replicasFrom(w.DesiredReplicas, w.Replicas, w.ReadyReplicas, w.AvailableReplicas, w.UpToDateReplicas)
	}
	cluster.Available, cluster.Reason = availability(c)
	if !cluster.Available && !cluster.Deleting && !cluster.Paused && judged(c) {
		cluster.Troubles = kube.ConditionTroubles(c.Status.Conditions)
	}
	if rolling := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterRollingOutCondition); rolling != nil &&
		rolling.Status == metav1.ConditionTrue {
		cluster.RollingOut = cmp.Or(oneLine(rolling.Message), rolling.Reason)
	}
	return cluster
}

// availability returns whether Cluster API reports a Cluster as Available, and the reason if it does not.
func availability(c *clusterv1.Cluster) (available bool, reason string) {
	condition := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterAvailableCondition)
	switch {
	case !c.DeletionTimestamp.IsZero():
		deleting := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterDeletingCondition)
		if deleting != nil && deleting.Message != "" {
			return false, "it is being deleted: " + oneLine(deleting.Message)
		}
		return false, "it is being deleted"
	case condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration >= c.Generation:
		return true, ""
	case isPaused(c):
		return false, "it is paused"
	case !judged(c):
		return false, "Cluster API has not reconciled it yet"
	}
	if reason := kube.Reason(c.Status.Conditions); reason != "" {
		return false, oneLine(reason)
	}
	return false, "condition Available is " + string(condition.Status)
}

// judged tells whether Cluster API has reconciled the current generation of the Cluster.
func judged(c *clusterv1.Cluster) bool {
	condition := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterAvailableCondition)
	return condition != nil && condition.ObservedGeneration >= c.Generation
}

func machineFrom(m *clusterv1.Machine) Machine {
	machine := Machine{
		Name: m.Name, Node: m.Status.NodeRef.Name, Version: m.Spec.Version, Phase: m.Status.Phase,
	}
	_, machine.ControlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]
	if ready := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineReadyCondition); ready != nil {
		machine.Ready = ready.Status == metav1.ConditionTrue
		if !machine.Ready {
			machine.Reason = oneLine(kube.Reason(m.Status.Conditions))
		}
	}
	return machine
}

func isPaused(c *clusterv1.Cluster) bool {
	_, annotated := c.Annotations[clusterv1.PausedAnnotation]
	return annotated || (c.Spec.Paused != nil && *c.Spec.Paused)
}

// ResumeCommand is the command that lets Cluster API act on a paused Cluster again, whichever way it is paused.
func ResumeCommand(cluster kube.Key) string {
	return diag.ShellCommand("kubectl", "-n", cluster.Namespace, "patch", "clusters.cluster.x-k8s.io", cluster.Name, "--type", "merge", "-p",
		`{"spec":{"paused":false},"metadata":{"annotations":{"`+clusterv1.PausedAnnotation+`":null}}}`)
}

func replicasFrom(desired, current, ready, available, upToDate *int32) Replicas {
	value := func(n *int32) int32 {
		if n == nil {
			return 0
		}
		return *n
	}
	return Replicas{value(desired), value(current), value(ready), value(available), value(upToDate)}
}

// oneLine turns a message of Cluster API, which is a bullet list, into one line.
func oneLine(message string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(message, "* ", "")), " ")
}

// ClusterObject returns a Cluster as an unstructured object.
func (m *Manager) ClusterObject(ctx context.Context, cluster kube.Key) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(clusterKind)
	if err := m.kube.Get(ctx, cluster, obj); err != nil {
		return nil, fmt.Errorf("read Cluster %s: %w", cluster, err)
	}
	return obj, nil
}

// kubeconfigSuffix follows the cluster's name in the name of its kubeconfig Secret.
const kubeconfigSuffix = "-kubeconfig"

// KubeconfigSecret returns the key of the Secret in which Cluster API keeps the administrator's kubeconfig of a workload cluster.
func KubeconfigSecret(cluster kube.Key) kube.Key {
	return kube.Key{Namespace: cluster.Namespace, Name: cluster.Name + kubeconfigSuffix}
}

// ClusterOfKubeconfig returns the cluster whose KubeconfigSecret has this key. It returns false if the Secret's name has another form.
func ClusterOfKubeconfig(secret kube.Key) (kube.Key, bool) {
	name, is := strings.CutSuffix(secret.Name, kubeconfigSuffix)
	return kube.Key{Namespace: secret.Namespace, Name: name}, is && name != ""
}

// WorkloadKubeconfig returns the administrator's kubeconfig of a workload cluster. It refuses a kubeconfig that would run a command or read
// a file on this machine.
func (m *Manager) WorkloadKubeconfig(ctx context.Context, cluster kube.Key) ([]byte, error) {
	secret := KubeconfigSecret(cluster)
	kubeconfig, err := m.kube.SecretValue(ctx, secret, "value")
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of Cluster %s: %w", cluster, err)
	}
	// A client of the kubeconfig would do this here, with the rights of fleetctl's or kubectl's user. An invalid kubeconfig fails where it is
	// used.
	if reach, err := kube.ReachOf(kubeconfig); err == nil && reach.Text() != "" {
		return nil, diag.Errorf("Cluster API writes only kubeconfigs with certificates or tokens: find out who wrote the Secret "+secret.String(),
			"refuse the kubeconfig of Cluster %s: on the machine that uses it, it %s", cluster, reach.Text())
	}
	return kubeconfig, nil
}
