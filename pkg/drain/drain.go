// Package drain deletes the resources that Kubernetes in a workload cluster has made in the cloud: load balancers and volumes.
//
// Cluster API does not know these resources. If the cluster is deleted before them, they stay, cost money, and may keep the cluster's
// network from being deleted. Only controllers inside the cluster can delete them, so the cluster is drained while it still runs.
package drain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Kinds of an Item.
const (
	LoadBalancer = "load balancer"
	Volume       = "volume"
)

// Item is what Kubernetes made in a cloud for one object of a workload cluster.
type Item struct {
	What string `json:"what"`
	// Object is the object that the resource was made for, KIND NAMESPACE/NAME.
	Object string `json:"object"`
	// ID is what the cloud calls it, as far as Kubernetes knows: an address, a volume's handle.
	ID string `json:"id,omitempty"`
	// Stays is why draining leaves it in the cloud; "" where draining takes it away.
	Stays string `json:"stays,omitempty"`

	object *unstructured.Unstructured
	claim  *unstructured.Unstructured // of a volume; nil where none is bound to it
}

// String is the item for people to read.
func (i Item) String() string {
	text := i.What
	if i.ID != "" {
		text += " " + i.ID
	}
	text += " of " + i.Object
	if i.Stays != "" {
		text += " (" + i.Stays + ")"
	}
	return text
}

var (
	serviceKind = corev1.SchemeGroupVersion.WithKind("Service")
	volumeKind  = corev1.SchemeGroupVersion.WithKind("PersistentVolume")
	claimKind   = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	ingressKind = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	gatewayKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
)

// Look lists what Kubernetes has made in the cloud around the cluster that c reaches, in a stable order. A kind that the cluster does not
// have has made nothing. It changes nothing.
func Look(ctx context.Context, c *kube.Client) ([]Item, error) {
	kinds := []schema.GroupVersionKind{serviceKind, ingressKind, gatewayKind, volumeKind}
	var mu sync.Mutex
	var items []Item
	err := kube.Each(len(kinds), kinds, func(kind schema.GroupVersionKind) error {
		objects, err := c.ListKind(ctx, kind)
		errs := []error{err}
		mu.Lock()
		defer mu.Unlock()
		for i := range objects {
			item, is, err := itemOf(&objects[i])
			errs = append(errs, err)
			if is {
				items = append(items, item)
			}
		}
		return errors.Join(errs...)
	})
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Object, b.Object))
	})
	return items, err
}

// itemOf tells what was made in the cloud for an object, if anything was.
func itemOf(obj *unstructured.Unstructured) (item Item, is bool, err error) {
	ref := kube.RefOf(obj)
	item = Item{What: LoadBalancer, Object: ref.String(), object: named(ref, obj.GetUID())}
	switch obj.GetKind() {
	case serviceKind.Kind:
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, service); err != nil {
			return item, false, err
		}
		for _, at := range service.Status.LoadBalancer.Ingress {
			item.ID = cmp.Or(item.ID, at.Hostname, at.IP)
		}
		// A Service that was a load balancer earlier keeps its controller's finalizer until the controller has deleted the load balancer.
		return item, service.Spec.Type == corev1.ServiceTypeLoadBalancer || slices.Contains(service.Finalizers, loadBalancerFinalizer), nil
	case volumeKind.Kind:
		volume := &corev1.PersistentVolume{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, volume); err != nil {
			return item, false, err
		}
		return volumeOf(item, volume)
	}
	// An Ingress or a Gateway whose controller has something outside of the cluster to take away has that controller's finalizer. One that
	// only shows the address of a Service goes with the cluster.
	return item, len(obj.GetFinalizers()) > 0, nil
}

// loadBalancerFinalizer is what Kubernetes' service controller holds a Service with until its load balancer is gone.
// Source: k8s.io/cloud-provider/service/helpers.
const loadBalancerFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// provisionedBy names the provisioner of a volume that was made for a claim. Source: Kubernetes' well-known annotations.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// volumeOf tells the cloud volume of a PersistentVolume. A volume that somebody made by hand belongs to that person. A folder or disk of a
// machine is deleted with the machine.
func volumeOf(item Item, volume *corev1.PersistentVolume) (Item, bool, error) {
	item.What = Volume
	source := volume.Spec.PersistentVolumeSource
	if volume.Annotations[provisionedBy] == "" || source.HostPath != nil || source.Local != nil {
		return item, false, nil
	}
	item.ID = handleOf(source)
	claim := volume.Spec.ClaimRef
	if claim != nil && volume.Status.Phase != corev1.VolumeReleased && volume.Status.Phase != corev1.VolumeFailed {
		ref := kube.Ref{GroupVersionKind: claimKind, Key: kube.Key{Namespace: claim.Namespace, Name: claim.Name}}
		item.Object, item.claim = ref.String(), named(ref, claim.UID)
	}
	switch {
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		item.Stays = "its reclaim policy is " + string(cmp.Or(volume.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain))
	case claim == nil:
		item.Stays = "no claim ever had it, and only the end of one makes its provisioner delete it"
	}
	return item, true, nil
}

// named is an object with only its kind, namespace and name; uid may be "".
func named(ref kube.Ref, uid types.UID) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	obj.SetUID(uid)
	return obj
}

// handleOf is what the cloud calls a volume.
func handleOf(s corev1.PersistentVolumeSource) string {
	switch {
	case s.CSI != nil:
		return s.CSI.VolumeHandle
	case s.AWSElasticBlockStore != nil:
		return s.AWSElasticBlockStore.VolumeID
	case s.AzureDisk != nil:
		return s.AzureDisk.DataDiskURI
	case s.AzureFile != nil:
		return s.AzureFile.ShareName
	case s.Cinder != nil:
		return s.Cinder.VolumeID
	case s.GCEPersistentDisk != nil:
		return s.GCEPersistentDisk.PDName
	case s.NFS != nil:
		return s.NFS.Server + ":" + s.NFS.Path
	case s.VsphereVolume != nil:
		return s.VsphereVolume.VolumePath
	}
	return ""
}
