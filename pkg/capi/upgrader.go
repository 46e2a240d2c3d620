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

// upgrader is clusterctl's, with the components of todo and no others to choose from, applied as Install applies them.
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
		// clusterctl asks for a provider's place before it asks for its repository, and knows that of some names only.
		unlisted = append(unlisted, releases.Provider{Name: entry.ProviderName, Type: releases.TypeOf(entry.GetProviderType()), URL: noPlace})
	}
	configuration, err := source.ConfigWith(unlisted) //nolint:contextcheck // it asks nobody
	if err != nil {
		return nil, err
	}
	applying := &upgradeProxy{proxy: m.proxy, client: &applyingClient{Client: m.proxy.client.WithWatch, kube: m.kube}}
	return cluster.New(cluster.Kubeconfig{}, configuration,
		cluster.InjectProxy(applying), cluster.InjectRepositoryFactory(r.client)).ProviderUpgrader(), nil
}

// noPlace stands for the repository of a provider that is installed and that the fleet does not list. Nothing is read there.
const noPlace = "https://fleetctl.invalid/releases/latest/components.yaml"

// metadataOf tells the contract of an installed provider by the labels of its CRDs, as Cluster API itself finds it: its releases are not
// known. One whose CRDs have none, as an extension of the runtime, fits with every core provider.
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

// upgradeRepositories are the repositories of an upgrade: each has the one version of its provider that is wanted.
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
		return nil, fmt.Errorf("%s is no part of this upgrade", label)
	}
	provider := releases.Provider{Name: p.Name(), Type: releases.TypeOf(p.Type()), Version: components.Version()}
	released, err := r.source.Repository(ctx, provider)
	if err != nil {
		return nil, err
	}
	return &upgradeRepository{Client: released, version: components.Version(), components: components}, nil
}

// upgradeRepository is the repository of one provider with only one version in it. So clusterctl asks for no list of releases, and applies
// the components that were read, tuned and compared with the lock.
type upgradeRepository struct {
	repository.Client
	repository.ComponentsClient

	version    string
	components repository.Components
	metadata   *clusterctlv1.Metadata
}

// GetVersions is the one version.
func (r *upgradeRepository) GetVersions(context.Context) ([]string, error) {
	return []string{r.version}, nil
}

// Components are answered by Get.
func (r *upgradeRepository) Components() repository.ComponentsClient { return r }

// Metadata is the metadata of the version, or the metadata that was given.
func (r *upgradeRepository) Metadata(version string) repository.MetadataClient {
	if r.metadata != nil {
		return toldMetadata{r.metadata}
	}
	return r.Client.Metadata(version)
}

// Get returns the components that were read before.
func (r *upgradeRepository) Get(_ context.Context, opts repository.ComponentsOptions) (repository.Components, error) {
	if r.components == nil || opts.Version != r.components.Version() || opts.TargetNamespace != r.components.TargetNamespace() {
		return nil, fmt.Errorf("version %s in namespace %s is no part of this upgrade", opts.Version, opts.TargetNamespace)
	}
	return r.components, nil
}

// toldMetadata is metadata that no repository has.
type toldMetadata struct{ *clusterctlv1.Metadata }

// Get returns it.
func (m toldMetadata) Get(context.Context) (*clusterctlv1.Metadata, error) { return m.Metadata, nil }

// upgradeProxy gives clusterctl's upgrade a client that applies objects where clusterctl would create or patch them.
type upgradeProxy struct {
	*proxy
	client client.Client
}

// NewClient is that client.
func (p *upgradeProxy) NewClient(context.Context) (client.Client, error) { return p.client, nil }

// applyingClient applies the components of providers as Install does, by server-side apply: then fields that a later version or another
// tuning drops really go, and one kind of probe is asked as eagerly as the other.
type applyingClient struct {
	client.Client
	kube *kube.Client
}

// Create applies components, and creates all else.
func (c *applyingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if component, ok := obj.(*unstructured.Unstructured); ok {
		return c.apply(ctx, component)
	}
	return c.Client.Create(ctx, obj, opts...)
}

// Patch applies components, and patches all else.
func (c *applyingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if component, ok := obj.(*unstructured.Unstructured); ok && patch.Type() == types.MergePatchType {
		return c.apply(ctx, component)
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// Update marks a Deployment that clusterctl stops during its upgrade. If the upgrade is cut off, the mark tells this Deployment from one
// that a person has stopped.
func (c *applyingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[stoppedAnnotation] = "true"
	}
	return c.Client.Update(ctx, obj, opts...)
}

// stoppedAnnotation of a Deployment without replicas says that an upgrade has stopped it.
const stoppedAnnotation = "fleetctl.dev/stopped-for-upgrade"

// stopped tells whether an upgrade has stopped a Deployment and not gone on.
func stopped(deployment *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	return found && replicas == 0 && deployment.GetAnnotations()[stoppedAnnotation] != ""
}

// stoppedOf are the Deployments of a provider that an upgrade has stopped.
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
	_, err := c.kube.Apply(ctx, []*unstructured.Unstructured{obj}, kube.ApplyOptions{ForceConflicts: true})
	return err
}

// certManagerNamespaces are the namespaces of cert-manager's objects.
var certManagerNamespaces = []string{releases.CertManager, metav1.NamespaceSystem}

// preserved tells whether an object stays when its provider is upgraded: without its CRD or its namespace, all objects of them would be
// lost.
func preserved(ref kube.Ref) bool {
	return ref.Kind == "CustomResourceDefinition" || ref.Kind == "Namespace"
}

func versionless(ref kube.Ref) kube.Ref {
	ref.Version = ""
	return ref
}

// remove deletes those of objects that are chosen.
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
