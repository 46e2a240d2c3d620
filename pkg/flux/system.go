package flux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// fluxOwner is the field manager under which Flux applies its own manifests. fleetctl applies them under the same name, so that a later
// version of the manifests can remove a field.
const fluxOwner = "kustomize-controller"

// System is the Flux of one cluster.
type System struct {
	client *kube.Client
}

// NewSystem returns the Flux of the cluster behind c. It sends no request, so the first use finds out whether the cluster has Flux.
func NewSystem(c *kube.Client) *System { return &System{client: c} }

// InstallOptions of Install.
type InstallOptions struct {
	// PodsRun, if not nil, returns when pods can run and their images are loaded. Install applies the Deployments only after that.
	PodsRun func(ctx context.Context) error
	// Detail, if not nil, is called with each line of progress.
	Detail func(string)
}

// Install applies components with their tuning, as in SystemFiles, and waits until their Deployments are ready.
func (s *System) Install(ctx context.Context, components *Components, opts InstallOptions) error {
	objects, err := kube.ParseYAML(components.Content)
	if err != nil {
		return diag.Wrap("read flux components", err, "")
	}
	if _, err := tune(objects, components.Tuning); err != nil {
		return err
	}
	own(objects)
	if err := s.applyInstall(ctx, objects, opts); err != nil {
		return fmt.Errorf("install flux: %w", err)
	}
	if err := s.client.WaitDeploymentsReady(ctx, deploymentsOf(objects), opts.Detail); err != nil {
		return fmt.Errorf("install flux: %w", err)
	}
	return nil
}

// The labels of kustomize-controller on applied objects: the name and the namespace of the Kustomization.
const (
	AppliedBy   = "kustomize.toolkit.fluxcd.io/name"
	appliedFrom = "kustomize.toolkit.fluxcd.io/namespace"
)

// own sets the labels that the Kustomization flux-system sets when it applies the same objects from the fleet repo. Then it need not
// write each CRD again.
func own(objects []*unstructured.Unstructured) {
	for _, obj := range objects {
		kube.AddLabels(obj, map[string]string{AppliedBy: systemKey.Name, appliedFrom: systemKey.Namespace})
	}
}

func (s *System) applyInstall(ctx context.Context, objects []*unstructured.Unstructured, opts InstallOptions) error {
	apply := kube.ApplyOptions{FieldManager: fluxOwner, ForceConflicts: true, Detail: opts.Detail}
	if opts.PodsRun != nil {
		others := slices.DeleteFunc(slices.Clone(objects), isDeployment)
		if _, err := s.client.Apply(ctx, others, apply); err != nil {
			return err
		}
		if err := opts.PodsRun(ctx); err != nil {
			return err
		}
		objects = slices.DeleteFunc(slices.Clone(objects), func(obj *unstructured.Unstructured) bool { return !isDeployment(obj) })
	}
	_, err := s.client.Apply(ctx, objects, apply)
	return err
}

func isDeployment(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Deployment" }

// Installed tells whether the Deployments of components run in the cluster in the same version and are ready. A second Install would then
// only revert patches of the user. A changed tuning reaches them through the fleet repo.
func (s *System) Installed(ctx context.Context, components *Components) (bool, error) {
	objects, err := kube.ParseYAML(components.Content)
	if err != nil {
		return false, diag.Wrap("read flux components", err, "")
	}
	for _, wanted := range objects {
		if !isDeployment(wanted) {
			continue
		}
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(wanted.GroupVersionKind())
		ref := kube.RefOf(wanted)
		if err := s.client.Get(ctx, ref.Key, have); kube.IsAbsent(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("get %s: %w", ref, err)
		}
		if have.GetLabels()[versionLabel] != wanted.GetLabels()[versionLabel] || !kube.DeploymentReady(have) {
			return false, nil
		}
	}
	return true, nil
}

const versionLabel = "app.kubernetes.io/version"

func deploymentsOf(objects []*unstructured.Unstructured) []kube.Key {
	var keys []kube.Key
	for _, obj := range objects {
		if isDeployment(obj) {
			keys = append(keys, kube.RefOf(obj).Key)
		}
	}
	return keys
}

// ApplySync applies the source Secret, unless it is nil, and the content of gotk-sync.yaml. From then on Flux applies the fleet repo.
// ApplySync may be repeated.
func (s *System) ApplySync(ctx context.Context, secret *corev1.Secret, sync []byte, detail func(string)) error {
	if err := s.ApplySecret(ctx, secret); err != nil {
		return err
	}
	objects, err := kube.ParseYAML(sync)
	if err != nil {
		return diag.Wrap("read flux sync", err, "")
	}
	own(objects)
	opts := kube.ApplyOptions{FieldManager: fluxOwner, ForceConflicts: true, Detail: detail}
	if _, err := s.client.Apply(ctx, objects, opts); err != nil {
		return fmt.Errorf("apply flux sync: %w", err)
	}
	return nil
}

// ApplySecret applies the source Secret; nil does nothing. No error quotes its values.
func (s *System) ApplySecret(ctx context.Context, secret *corev1.Secret) error {
	if secret == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return fmt.Errorf("apply source secret %s/%s: it cannot be encoded", secret.Namespace, secret.Name)
	}
	obj := &unstructured.Unstructured{Object: content}
	opts := kube.ApplyOptions{ForceConflicts: true}
	if _, err := s.client.Apply(ctx, []*unstructured.Unstructured{obj}, opts); err != nil {
		return fmt.Errorf("apply source secret: %w", err)
	}
	return nil
}

// Reconcile makes Flux fetch the fleet repo now instead of at its next interval. It does not wait for that. It fails if there is no
// GitRepository flux-system.
func (s *System) Reconcile(ctx context.Context) error {
	return s.request(ctx, kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey})
}

// ReconcileSources makes Flux fetch the fleet repo now, with each source that follows a branch or tag of it. It does not wait for that.
// It is no error if there is no such source.
func (s *System) ReconcileSources(ctx context.Context) error {
	sources := &unstructured.UnstructuredList{}
	sources.SetGroupVersionKind(gitRepositoryKind.GroupVersion().WithKind(gitRepositoryKind.Kind + "List"))
	err := s.client.List(ctx, sources, kube.InNamespace(Namespace))
	if kube.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list sources: %w", err)
	}
	at := slices.IndexFunc(sources.Items, func(r unstructured.Unstructured) bool { return r.GetName() == systemKey.Name })
	if at < 0 {
		return nil
	}
	fleetRepo := urlOf(sources.Items[at])
	var all error
	for _, r := range sources.Items {
		if urlOf(r) == fleetRepo {
			all = errors.Join(all, s.request(ctx, kube.RefOf(&r)))
		}
	}
	return all
}

func urlOf(source unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url") // always a string, by the CRD's schema
	return url
}

const initHint = "fleetctl init installs Flux and points it at the fleet repo"

// request makes Flux reconcile one object.
func (s *System) request(ctx context.Context, ref kube.Ref) error {
	err := s.patch(ctx, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		fluxmeta.ReconcileRequestAnnotation: time.Now().Format(time.RFC3339Nano),
	}}})
	if kube.IsAbsent(err) {
		return diag.Errorf(initHint, "reconcile %s: it does not exist", ref)
	}
	if err != nil {
		return fmt.Errorf("reconcile %s: %w", ref, err)
	}
	return nil
}

// patch merges a change into one object.
func (s *System) patch(ctx context.Context, ref kube.Ref, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	return s.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, data), client.FieldOwner(kube.FieldManager))
}

// look reads all Flux objects of the cluster. It has no objects of kinds that the cluster does not know.
func (s *System) look(ctx context.Context) (world, error) {
	w := world{}
	for _, gvk := range allKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := s.client.List(ctx, list)
		if kube.IsAbsent(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		w[gvk] = kube.Objects{}
		for i := range list.Items {
			w[gvk][kube.RefOf(&list.Items[i]).Key] = &list.Items[i]
		}
	}
	return w, nil
}

// gone tells whether err means that an object was deleted between two requests.
func gone(err error) bool { return apierrors.IsNotFound(err) }
