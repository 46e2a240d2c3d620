//go:build e2e && clouds

package e2e

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	kubeSystem       = "kube-system"
	controlPlaneRole = "node-role.kubernetes.io/control-plane"
)

// put makes an object, or takes the existing object of this name, and sets the object's status.
func put(ctx context.Context, c *kube.Client, obj client.Object, status func()) error {
	if err := client.IgnoreAlreadyExists(c.Create(ctx, obj)); err != nil {
		return err
	}
	if status == nil {
		return nil
	}
	// The cluster's own controllers and its provider write to the same objects.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		status()
		return c.Status().Update(ctx, obj)
	})
}

// uploadConfig stores kubeadm's configuration in the cluster, as kubeadm does. By it, Cluster API knows an initialised cluster.
func uploadConfig(ctx context.Context, c *kube.Client, d *bootData) error {
	return put(ctx, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubeSystem, Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": d.clusterText},
	}, nil)
}

// introduce checks what kubeadm join checks first: the machine's boot data name the key of this authority, and the API server knows the
// token.
func introduce(ctx context.Context, j *joinConfiguration, authority []byte) error {
	told := j.Discovery.BootstrapToken
	certificates, err := cert.ParseCertsPEM(authority)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(certificates[0].RawSubjectPublicKeyInfo)
	if pin := "sha256:" + hex.EncodeToString(hash[:]); !slices.Contains(told.CACertHashes, pin) {
		return fmt.Errorf("the cluster's authority is %s, and the machine was told %v", pin, told.CACertHashes)
	}
	c, err := kube.NewForConfig(&rest.Config{
		Host: "https://" + told.APIServerEndpoint, BearerToken: told.Token, TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	}, kube.Options{Timeout: 10 * time.Second})
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return fmt.Errorf("introduce the machine with its bootstrap token: %w", err)
	}
	if user := review.Status.UserInfo.Username; !strings.HasPrefix(user, "system:bootstrap:") {
		return fmt.Errorf("the bootstrap token is that of %s", user)
	}
	return nil
}

// register makes the Node as the machine's kubelet does, and completes it as the cloud's controller does.
func register(ctx context.Context, c *kube.Client, m machine, d *bootData) error {
	labels := map[string]string{
		corev1.LabelHostname: m.Hostname, corev1.LabelInstanceTypeStable: m.Type, corev1.LabelTopologyZone: m.Zone,
		corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	for _, argument := range d.node.KubeletExtraArgs {
		if argument.Name != "node-labels" {
			continue
		}
		for pair := range strings.SplitSeq(argument.Value, ",") {
			name, value, _ := strings.Cut(pair, "=")
			labels[name] = value
		}
	}
	var taints []corev1.Taint
	if d.node.Taints != nil {
		taints = *d.node.Taints
	}
	if d.controlPlane() {
		labels[controlPlaneRole] = ""
		if d.node.Taints == nil {
			taints = []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Hostname, Labels: labels}, Spec: corev1.NodeSpec{ProviderID: m.ProviderID, Taints: taints},
	}
	return put(ctx, c, node, func() {
		now := metav1.Now()
		node.Status.Conditions = nil
		for condition, value := range map[corev1.NodeConditionType]corev1.ConditionStatus{
			corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
			corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
		} {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type: condition, Status: value, Reason: "Booted", LastHeartbeatTime: now, LastTransitionTime: now,
			})
		}
		node.Status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: m.Hostname},
			{Type: corev1.NodeExternalIP, Address: m.Address},
		}
		node.Status.NodeInfo = corev1.NodeSystemInfo{
			KubeletVersion: cmp.Or(m.Version, kubernetesVersion), OperatingSystem: "linux", Architecture: "amd64",
			ContainerRuntimeVersion: "none://0", MachineID: m.ID,
		}
	})
}

// mirror makes the mirror pods of the control plane, whose programs run as processes. kube-scheduler has a pod and no process, because no
// pod is scheduled.
func mirror(ctx context.Context, c *kube.Client, m machine) error {
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: kubeSystem, Name: component + "-" + m.Hostname, Labels: map[string]string{"component": component, "tier": "control-plane"},
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: m.ID},
			},
			Spec: corev1.PodSpec{
				NodeName: m.Hostname, HostNetwork: true, PriorityClassName: "system-node-critical",
				Containers:  []corev1.Container{{Name: component, Image: "registry.k8s.io/" + component + ":" + kubernetesVersion}},
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
			},
		}
		err := put(ctx, c, pod, func() {
			now := metav1.Now()
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, ContainerStatuses: []corev1.ContainerStatus{{
				Name: component, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}}}
			for _, condition := range []corev1.PodConditionType{
				corev1.PodScheduled, corev1.PodInitialized,
				corev1.ContainersReady, corev1.PodReady,
			} {
				pod.Status.Conditions = append(pod.Status.Conditions,
					corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unregister deletes the Node of a deleted machine, as the cloud's controller does.
func unregister(ctx context.Context, c *kube.Client, m machine) error {
	err := c.WithWatch.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(kubeSystem)); err != nil {
		return err
	}
	var errs []error
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == m.Hostname {
			errs = append(errs, client.IgnoreNotFound(c.WithWatch.Delete(ctx, &pod, client.GracePeriodSeconds(0))))
		}
	}
	return errors.Join(errs...)
}
