package capi

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// installation applies a plan. Each part waits only for the parts that it needs:
//   - cert-manager comes first, because its start takes longest. Until pods can run, and while cert-manager starts, the objects of the
//     providers are applied, except their Deployments.
//   - cert-manager's own webhook configurations come last. They only check its objects, and until its webhook runs, the API server would
//     refuse the providers' Certificates because of them.
//   - A provider's Deployments come after the Secrets that their pods mount, and after the CRDs of other providers that their managers read
//     at their start. Otherwise a pod waits for a Secret, or its manager ends, and Kubernetes retries after longer and longer pauses.
type installation struct {
	kube    *kube.Client
	detail  func(string)
	podsRun func(context.Context) error
	halted  bool
	// ownCerts means that clusterctl manages the cert-manager in the cluster.
	ownCerts bool
}

func (in *installation) apply(ctx context.Context, todo *plan) error {
	var certs certManagerParts
	if todo.applyCerts {
		certs = splitCertManager(eager(todo.certs))
		in.detail("installing cert-manager")
	}
	if err := in.do(ctx, certs.base); err != nil {
		return fmt.Errorf("install cert-manager: %w", err)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := in.start(groupCtx, certs.deployments); err != nil {
			return fmt.Errorf("install cert-manager: %w", err)
		}
		return nil
	})
	if len(todo.missing) > 0 {
		in.detail("installing providers")
	}
	crds := newGate(todo.missing)
	for _, components := range todo.missing {
		group.Go(func() error {
			if err := in.provider(groupCtx, components, crds); err != nil {
				return fmt.Errorf("install %s: %w", components.ManifestLabel(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := in.do(ctx, certs.webhooks); err != nil {
		return fmt.Errorf("install cert-manager: %w", err)
	}
	return nil
}

// gate delays managers until the CRDs of other providers that they read exist.
type gate struct {
	awaited atomic.Int64
	opened  chan struct{}
}

// newGate returns a gate that waits for each of the providers whose CRDs other providers read.
func newGate(providers []repository.Components) *gate {
	g := &gate{opened: make(chan struct{})}
	for _, components := range providers {
		if readByOthers(components) {
			g.awaited.Add(1)
		}
	}
	if g.awaited.Load() == 0 {
		close(g.opened)
	}
	return g
}

// arrive reports that all CRDs of one provider exist.
func (g *gate) arrive(components repository.Components) {
	if readByOthers(components) && g.awaited.Add(-1) == 0 {
		close(g.opened)
	}
}

func (g *gate) pass(ctx context.Context) error {
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readByOthers tells whether managers of other providers read the CRDs of this provider. Every manager reads those of the core provider,
// the control plane's manager reads those of the bootstrap provider, and infrastructure managers read both.
func readByOthers(components repository.Components) bool {
	switch components.Type() {
	case clusterctlv1.CoreProviderType, clusterctlv1.BootstrapProviderType, clusterctlv1.ControlPlaneProviderType:
		return true
	}
	return false
}

// provider applies the components of one provider, and then adds the provider to the inventory, as clusterctl does: a provider in the
// inventory has all its objects. It starts the managers after the gate is open.
func (in *installation) provider(ctx context.Context, components repository.Components, crds *gate) error {
	parts := split(components.Objs())
	if err := in.do(ctx, parts.namespaces); err != nil {
		return err
	}
	known, err := in.serve(ctx, parts.custom) // before the Certificates: cert-manager issues one whose Secret does not exist
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := in.do(groupCtx, migrated(known.trusting(parts.base))); err != nil {
			return err
		}
		crds.arrive(components)
		return nil
	})
	group.Go(func() error {
		if err := in.do(groupCtx, parts.custom); err != nil {
			return err
		}
		return in.waitSecrets(groupCtx, parts)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := crds.pass(ctx); err != nil {
		return err
	}
	if err := in.start(ctx, eager(parts.deployments)); err != nil {
		return err
	}
	entry := components.InventoryObject()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
	if err != nil {
		return fmt.Errorf("write the inventory: %w", err)
	}
	return in.do(ctx, []*unstructured.Unstructured{{Object: content}})
}

// migrated returns objects whose CRDs have the mark of Cluster API's managers that no object of a CRD is stored in an old version. That is
// always true of the first generation of a CRD, for which this mark stands. Without it, each manager reads and writes each of its CRDs when
// it starts first. The mark fits no later generation, so the managers look again after each change of a CRD.
func migrated(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			obj = obj.DeepCopy()
			kube.AddAnnotations(obj, map[string]string{clusterv1.CRDMigrationObservedGenerationAnnotation: "1"})
		}
		all = append(all, obj)
	}
	return all
}

// halted removes the replicas of a Deployment and records their number in ReplicasMark. It does nothing if the Deployment has the mark.
func halted(d *unstructured.Unstructured) error {
	if _, done := d.GetAnnotations()[ReplicasMark]; done {
		return nil
	}
	replicas, is, err := unstructured.NestedInt64(d.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	if !is {
		replicas = 1
	}
	kube.AddAnnotations(d, map[string]string{ReplicasMark: strconv.FormatInt(replicas, 10)})
	return unstructured.SetNestedField(d.Object, int64(0), "spec", "replicas")
}

func (in *installation) do(ctx context.Context, objects []*unstructured.Unstructured) error {
	_, err := in.kube.Apply(ctx, objects, kube.ApplyOptions{ForceConflicts: true})
	return err
}

// start applies Deployments when pods can run.
func (in *installation) start(ctx context.Context, deployments []*unstructured.Unstructured) error {
	if len(deployments) == 0 {
		return nil
	}
	if in.podsRun != nil {
		if err := in.podsRun(ctx); err != nil {
			return err
		}
	}
	return in.do(ctx, deployments)
}

// waitSecrets waits until cert-manager has made the Secrets of the provider's Certificates.
func (in *installation) waitSecrets(ctx context.Context, parts parts) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, obj := range parts.custom {
		name, _, _ := unstructured.NestedString(obj.Object, "spec", "secretName")
		if obj.GetKind() != "Certificate" || name == "" {
			continue
		}
		group.Go(func() error {
			key := kube.Key{Namespace: obj.GetNamespace(), Name: name}
			return in.kube.WaitFor(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), key, func(secret *unstructured.Unstructured) (bool, error) {
				return secret != nil, nil
			})
		})
	}
	return group.Wait()
}
