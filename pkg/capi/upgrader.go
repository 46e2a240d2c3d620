package capi

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// upgrader returns clusterctl's upgrader. It can choose only the components of todo, and applies them in the same way as Install.
func (m *Manager) upgrader(ctx context.Context, source *releases.Source, todo *plan) (cluster.ProviderUpgrader, error) {
	r := &upgradeRepositories{source: source, wanted: map[string]repository.Components{}, unlisted: map[string]*clusterctlv1.Metadata{}}
	for _, components := range todo.wanted {
		r.wanted[components.ManifestLabel()] = components
	}
	var unlisted []releases.Provider
	for _, entry := range todo.inventory {
		if r.wanted[entry.ManifestLabel()] != nil {
			continue
		}
		metadata, err := m.metadataOf(ctx, entry)
		if err != nil {
			return nil, err
		}
		r.unlisted[entry.ManifestLabel()] = metadata
		// clusterctl looks up a provider's URL before its repository, and knows only some names.
		unlisted = append(unlisted, releases.Provider{Name: entry.ProviderName, Type: releases.TypeOf(entry.GetProviderType()), URL: noPlace})
	}
	configuration, err := source.ConfigWith(unlisted) //nolint:contextcheck // it sends no request
	if err != nil {
		return nil, err
	}
	applying := &upgradeProxy{proxy: m.proxy, client: &applyingClient{Client: m.proxy.client.WithWatch, kube: m.kube}}
	return cluster.New(cluster.Kubeconfig{}, configuration,
		cluster.InjectProxy(applying), cluster.InjectRepositoryFactory(r.client)).ProviderUpgrader(), nil
}

// noPlace is the URL of an installed provider that the fleet does not list. Nothing reads it.
const noPlace = "https://fleetctl.invalid/releases/latest/components.yaml"

// metadataOf returns metadata with the contract of an installed provider whose releases are unknown. It reads the contract from the labels
// of the provider's CRDs, as Cluster API does. A provider whose CRDs have no such label, such as a runtime extension, fits every core
// provider.
func (m *Manager) metadataOf(ctx context.Context, entry clusterctlv1.Provider) (*clusterctlv1.Metadata, error) {
	number, err := version.ParseSemantic(entry.Version)
	if err != nil {
		return nil, fmt.Errorf("read the version of %s in clusterctl's inventory: %w", entry.ManifestLabel(), err)
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := m.kube.List(ctx, crds, kube.MatchingLabels{clusterv1.ProviderNameLabel: entry.ManifestLabel()}); err != nil {
		return nil, fmt.Errorf("list the CRDs of %s: %w", entry.ManifestLabel(), err)
	}
	known, newest := false, ""
	for i := range crds.Items {
		for label := range crds.Items[i].Labels {
			name, ok := strings.CutPrefix(label, clusterv1.GroupVersion.Group+"/v")
			if !ok {
				continue
			}
			known = true
			if releases.Fits(releases.Infrastructure, "v"+name) {
				newest = max(newest, "v"+name)
			}
		}
	}
	contract := newest
	if !known {
		contract = releases.CoreContract
	}
	metadata := &clusterctlv1.Metadata{ReleaseSeries: []clusterctlv1.ReleaseSeries{{
		Major: int32(number.Major()), Minor: int32(number.Minor()), Contract: contract, //nolint:gosec // versions are small numbers
	}}}
	return metadata, nil
}

// upgradeRepositories are the repositories of an upgrade. Each has only the wanted version of its provider.
type upgradeRepositories struct {
	source   *releases.Source
	wanted   map[string]repository.Components
	unlisted map[string]*clusterctlv1.Metadata
}

func (r *upgradeRepositories) client(
	ctx context.Context,
	p config.Provider,
	_ config.Client,
	_ ...repository.Option,
) (repository.Client, error) {
	label := p.ManifestLabel()
	if metadata := r.unlisted[label]; metadata != nil {
		series := metadata.ReleaseSeries[0]
		return &upgradeRepository{version: fmt.Sprintf("v%d.%d.0", series.Major, series.Minor), metadata: metadata}, nil
	}
	components := r.wanted[label]
	if components == nil {
		return nil, fmt.Errorf("%s is not part of this upgrade", label)
	}
	provider := releases.Provider{Name: p.Name(), Type: releases.TypeOf(p.Type()), Version: components.Version()}
	released, err := r.source.Repository(ctx, provider)
	if err != nil {
		return nil, err
	}
	return &upgradeRepository{Client: released, version: components.Version(), components: components}, nil
}

// upgradeRepository is the repository of one provider, with only one version. So clusterctl lists no releases, and applies the components
// that were read, tuned and compared with the lock.
type upgradeRepository struct {
	repository.Client
	repository.ComponentsClient

	version    string
	components repository.Components
	metadata   *clusterctlv1.Metadata
}

// GetVersions returns the only version.
func (r *upgradeRepository) GetVersions(context.Context) ([]string, error) {
	return []string{r.version}, nil
}

// Components returns r itself, whose Get returns the components.
func (r *upgradeRepository) Components() repository.ComponentsClient { return r }

// Metadata returns the given metadata, or else the metadata of the version.
func (r *upgradeRepository) Metadata(version string) repository.MetadataClient {
	if r.metadata != nil {
		return toldMetadata{r.metadata}
	}
	return r.Client.Metadata(version)
}

// Get returns the components that were read before.
func (r *upgradeRepository) Get(_ context.Context, opts repository.ComponentsOptions) (repository.Components, error) {
	if r.components == nil || opts.Version != r.components.Version() || opts.TargetNamespace != r.components.TargetNamespace() {
		return nil, fmt.Errorf("version %s in namespace %s is not part of this upgrade", opts.Version, opts.TargetNamespace)
	}
	return r.components, nil
}

// toldMetadata is metadata that comes from no repository.
type toldMetadata struct{ *clusterctlv1.Metadata }

// Get returns the metadata.
func (m toldMetadata) Get(context.Context) (*clusterctlv1.Metadata, error) { return m.Metadata, nil }

// upgradeProxy gives clusterctl's upgrade a client that applies the objects that clusterctl would create or patch.
type upgradeProxy struct {
	*proxy
	client client.Client
}

// NewClient returns that client.
func (p *upgradeProxy) NewClient(context.Context) (client.Client, error) { return p.client, nil }

// applyingClient applies the components of providers by server-side apply, as Install does. So fields that a later version or another
// tuning drops are removed, and readiness probes are as frequent as after Install.
type applyingClient struct {
	client.Client
	kube *kube.Client
}

// Create applies components, and creates all other objects.
func (c *applyingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if component, ok := obj.(*unstructured.Unstructured); ok {
		return c.apply(ctx, component)
	}
	return c.Client.Create(ctx, obj, opts...)
}

// Patch applies components, and patches all other objects.
func (c *applyingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if component, ok := obj.(*unstructured.Unstructured); ok && patch.Type() == types.MergePatchType {
		return c.apply(ctx, component)
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// Update marks a Deployment that clusterctl stops during its upgrade. After an interrupted upgrade, the mark shows that no person has
// stopped the Deployment.
func (c *applyingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[stoppedAnnotation] = "true"
	}
	return c.Client.Update(ctx, obj, opts...)
}

// stoppedAnnotation marks a Deployment that an upgrade has scaled to zero.
const stoppedAnnotation = "fleetctl.dev/stopped-for-upgrade"

// stopped tells whether an interrupted upgrade has left a Deployment scaled to zero.
func stopped(deployment *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	return found && replicas == 0 && deployment.GetAnnotations()[stoppedAnnotation] != ""
}

// stoppedOf returns the Deployments of a provider that an interrupted upgrade has left scaled to zero.
func stoppedOf(components repository.Components, deployments kube.Objects) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, key := range kube.DeploymentKeys(kube.Pointers(components.Objs())) {
		if d := deployments[key]; d != nil && stopped(d) {
			found = append(found, d)
		}
	}
	return found
}

func (c *applyingClient) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	obj = eager([]*unstructured.Unstructured{obj})[0].DeepCopy()
	obj.SetResourceVersion("")
	obj, err := keepAuthorities(ctx, c.kube, obj)
	if err != nil {
		return err
	}
	_, err = c.kube.Apply(ctx, []*unstructured.Unstructured{obj}, kube.ApplyOptions{ForceConflicts: true})
	return err
}

// certManagerNamespaces are the namespaces of cert-manager's objects.
var certManagerNamespaces = []string{releases.CertManager, metav1.NamespaceSystem}

// preserved tells whether an object stays when its provider is upgraded. Deleting a CRD or a namespace would delete all objects of it.
func preserved(ref kube.Ref) bool {
	return ref.Kind == "CustomResourceDefinition" || ref.Kind == "Namespace"
}

func versionless(ref kube.Ref) kube.Ref {
	ref.Version = ""
	return ref
}

// remove deletes the objects for which chosen returns true.
func (m *Manager) remove(ctx context.Context, objects []unstructured.Unstructured, chosen func(kube.Ref) bool) error {
	var gone []*unstructured.Unstructured
	for i := range objects {
		if chosen(kube.RefOf(&objects[i])) {
			gone = append(gone, &objects[i])
		}
	}
	return m.kube.Delete(ctx, gone, kube.DeleteOptions{Wait: true})
}

func values(objects []*unstructured.Unstructured) []unstructured.Unstructured {
	all := make([]unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		all = append(all, *obj)
	}
	return all
}
