//go:build integration

package drain_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// made are the objects of somebody's cluster: some with resources in a cloud, some without.
const made = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: was, namespace: shop, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gateway, namespace: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: inner, namespace: shop}, spec: {ports: [{port: 80}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: outer, namespace: shop, finalizers: [ingress.k8s.aws/resources]}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: inner, namespace: shop}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {serviceName: db, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-db, annotations: {pv.kubernetes.io/provisioned-by: ebs.csi.aws.com}},
 spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: s, persistentVolumeReclaimPolicy: Delete, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}, claimRef: {namespace: shop, name: db}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: db, namespace: shop}, spec: {accessModes: [ReadWriteOnce], storageClassName: s, volumeName: pv-db, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-kept, annotations: {pv.kubernetes.io/provisioned-by: ebs.csi.aws.com}},
 spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: s, persistentVolumeReclaimPolicy: Retain, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-2}, claimRef: {namespace: shop, name: kept}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: kept, namespace: shop}, spec: {accessModes: [ReadWriteOnce], storageClassName: s, volumeName: pv-kept, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-disk, annotations: {pv.kubernetes.io/provisioned-by: rancher.io/local-path}},
 spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: s, persistentVolumeReclaimPolicy: Delete, hostPath: {path: /opt}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-hand},
 spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, storageClassName: s, persistentVolumeReclaimPolicy: Delete, csi: {driver: ebs.csi.aws.com, volumeHandle: vol-3}}}
`

func TestDrain(t *testing.T) {
	c, _ := kubetest.Start(t)
	objects, err := kube.ParseYAML([]byte(made))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), objects, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	startPod(t, c)
	addressed(t, c)

	t.Run("it lists what is in a cloud", func(t *testing.T) {
		want := []string{
			"load balancer of Ingress shop/outer", "load balancer of Service shop/was", "load balancer a1.elb.test of Service shop/web",
			"volume vol-1 of PersistentVolumeClaim shop/db", "volume vol-2 of PersistentVolumeClaim shop/kept (its reclaim policy is Retain)",
		}
		if got := names(t, c); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	t.Run("it says what holds it where nobody takes it away", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := drain.Run(ctx, c, nil)
		if err == nil || !strings.Contains(err.Error(), "load balancer a1.elb.test of Service shop/web") ||
			!strings.Contains(err.Error(), "vol-1") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("it goes on, and takes away what is to go", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		controllers(ctx, t, c)
		if err := drain.Run(ctx, c, nil); err != nil {
			t.Fatal(err)
		}
		if got := names(t, c); len(got) != 1 || !strings.Contains(got[0], "vol-2") {
			t.Errorf("left: %q", got)
		}
		for name, there := range map[string]bool{
			"Service inner": true, "Service web": false, "Service was": false, "Ingress inner": true, "Ingress outer": false,
			"PersistentVolume pv-kept": true, "PersistentVolume pv-disk": true, "PersistentVolume pv-hand": true, "PersistentVolume pv-db": false,
			"PersistentVolumeClaim kept": true, "PersistentVolumeClaim db": false, "StatefulSet db": false, "Pod db-0": false,
			"ConfigMap gateway": false,
		} {
			if exists(t, c, name) != there {
				t.Errorf("%s: there is %v, want %v", name, !there, there)
			}
		}
	})
	t.Run("it names what comes again and again", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		again := func() *corev1.Service {
			s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
			s.Namespace, s.Name = "shop", "again"
			return s
		}
		if err := c.Create(ctx, again()); err != nil {
			t.Fatal(err)
		}
		go func() { // an operator
			_ = c.Watch(ctx, kind("Service"), kube.Selection{Namespace: "shop"}, func(now kube.Objects) (bool, error) {
				if now[kube.Key{Namespace: "shop", Name: "again"}] == nil {
					return false, client.IgnoreAlreadyExists(c.Create(ctx, again()))
				}
				return false, nil
			})
		}()
		var err error
		for err == nil && ctx.Err() == nil { // a run ends well where it is faster than the operator
			err = drain.Run(ctx, c, nil)
		}
		if err == nil || !strings.Contains(err.Error(), "something makes them again") || !strings.Contains(err.Error(), "Service shop/again") {
			t.Errorf("got %v", err)
		}
	})
}

// startPod makes the pod that the StatefulSet's controller would make, which does not run here.
func startPod(t *testing.T, c *kube.Client) {
	t.Helper()
	set := get(t, c, "StatefulSet db")
	pod, err := kube.ParseYAML(
		[]byte(
			`{apiVersion: v1, kind: Pod, metadata: {name: db-0, namespace: shop, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true, uid: ` +
				string(
					set.GetUID(),
				) + `}]}, spec: {containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: db}}]}}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	pod[0].SetManagedFields(nil)
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = "shop", "default"
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), pod[0]); err != nil {
		t.Fatal(err)
	}
}

// addressed gives the Service the address that its cloud would give it, and an owner that would make it again.
func addressed(t *testing.T, c *kube.Client) {
	t.Helper()
	owner := fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gateway","controller":true,"uid":%q}]}}`,
		get(t, c, "ConfigMap gateway").GetUID())
	if err := c.Patch(t.Context(), get(t, c, "Service web"), client.RawPatch("application/merge-patch+json", []byte(owner))); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"loadBalancer":{"ingress":[{"hostname":"a1.elb.test"}]}}}`))
	if err := c.Status().Patch(t.Context(), get(t, c, "Service web"), patch); err != nil {
		t.Fatal(err)
	}
}

// controllers play a cloud's controllers and Kubernetes' own controllers, which do not run here. They remove the finalizers of objects that
// are being deleted, and those of a claim when no pod uses the claim. A provisioner deletes a volume, and then its PersistentVolume, when
// the claim is gone. If the PersistentVolume is being deleted already, the provisioner leaves the volume in the cloud.
func controllers(ctx context.Context, t *testing.T, c *kube.Client) {
	t.Helper()
	go func() {
		_ = c.Watch(ctx, kind("PersistentVolume"), kube.Selection{Name: "pv-db"}, func(now kube.Objects) (bool, error) {
			for _, volume := range now {
				if volume.GetDeletionTimestamp() != nil {
					t.Error("the PersistentVolume is deleted before its provisioner has deleted the volume")
				}
			}
			return len(now) == 0, nil
		})
	}()
	for _, name := range []string{"Service", "Ingress", "PersistentVolumeClaim"} {
		go func() {
			_ = c.Watch(ctx, kind(name), kube.Selection{}, func(now kube.Objects) (bool, error) {
				for _, obj := range now {
					if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) == 0 {
						continue
					}
					if name == "PersistentVolumeClaim" && exists(t, c, "Pod db-0") {
						t.Error("a claim is deleted while a pod has it")
					}
					err := c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
					if client.IgnoreNotFound(err) != nil {
						return false, err
					}
					if name == "PersistentVolumeClaim" {
						provisioner(ctx, t, c)
					}
				}
				return false, nil
			})
		}()
	}
}

// provisioner takes the volume of a claim that is gone out of the cloud.
func provisioner(ctx context.Context, t *testing.T, c *kube.Client) {
	t.Helper()
	volume, err := find(ctx, c, "PersistentVolume pv-db")
	if err == nil {
		err = c.Patch(ctx, volume, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}
	if err == nil {
		err = c.WithWatch.Delete(ctx, volume)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

func names(t *testing.T, c *kube.Client) []string {
	t.Helper()
	items, err := drain.Look(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range items {
		names = append(names, i.String())
	}
	return names
}

func kind(name string) schema.GroupVersionKind {
	group := map[string]string{"Ingress": "networking.k8s.io", "StatefulSet": "apps"}[name]
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}
}

// get reads the object that is called KIND NAME, in the namespace shop or in none.
func get(t *testing.T, c *kube.Client, what string) *unstructured.Unstructured {
	t.Helper()
	obj, err := find(t.Context(), c, what)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func find(ctx context.Context, c *kube.Client, what string) (*unstructured.Unstructured, error) {
	kindName, name, _ := strings.Cut(what, " ")
	key := kube.Key{Namespace: "shop", Name: name}
	if kindName == "PersistentVolume" {
		key.Namespace = ""
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind(kindName))
	return obj, c.Get(ctx, key, obj)
}

func exists(t *testing.T, c *kube.Client, what string) bool {
	t.Helper()
	_, err := find(context.WithoutCancel(t.Context()), c, what)
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	return err == nil
}
