// Package capi installs Cluster API and its providers, reads the state of a management cluster, and moves its Clusters to another one. Only
// this package uses clusterctl's library. Components, inventory and move are clusterctl's own, so that stock `clusterctl upgrade`, `move`
// and `delete` work on its installations. pkg/capi/releases finds and reads the releases that Install installs. pkg/kube applies objects
// and waits for them.
package capi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/graph"
	"github.com/fleetctl/fleetctl/pkg/capi/internal/messages"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Manager works on the Cluster API of one management cluster. It is safe for concurrent use.
type Manager struct {
	*graph.Members

	kube  *kube.Client
	proxy *proxy
}

// New returns a Manager for the cluster that client talks to. It sends no request.
func New(client *kube.Client) (*Manager, error) {
	messages.Listen(nil)
	p, err := newProxy(client)
	if err != nil {
		return nil, err
	}
	return &Manager{Members: graph.NewMembers(client), kube: client, proxy: p}, nil
}

// As returns a Manager that uses another client of the same cluster. It shares the kinds that m has read.
func (m *Manager) As(client *kube.Client) (*Manager, error) {
	other, err := New(client)
	if err != nil {
		return nil, err
	}
	other.Members = m.Members.As(client)
	return other, nil
}

// clusterctl returns clusterctl's library for the cluster, with components from source. source may be nil if no components are needed.
func (m *Manager) clusterctl(source *releases.Source) cluster.Client {
	options := []cluster.Option{cluster.InjectProxy(m.proxy)}
	if source == nil {
		return cluster.New(cluster.Kubeconfig{}, nil, options...)
	}
	return cluster.New(cluster.Kubeconfig{}, source.Config(), append(options, cluster.InjectRepositoryFactory(repositoriesOf(source)))...)
}

// repositoriesOf returns the repositories of source for clusterctl's library.
func repositoriesOf(source *releases.Source) cluster.RepositoryClientFactory {
	return func(ctx context.Context, p config.Provider, _ config.Client, _ ...repository.Option) (repository.Client, error) {
		return source.Repository(ctx, releases.Provider{Name: p.Name(), Type: releases.TypeOf(p.Type())})
	}
}

// InstalledProvider is a provider in clusterctl's inventory.
type InstalledProvider struct {
	releases.Provider
	// Namespace is the namespace of its Deployments.
	Namespace string
	// Ready means that all its Deployments are rolled out and available. Reason says why they are not.
	Ready  bool
	Reason string
	// NotReady is the name of the Deployment that Reason is about; "" if the provider is Ready, or has no Deployment.
	NotReady string
}

// Installed returns the providers in the cluster's inventory with their health, in the order of WithDefaults. A cluster without Cluster API
// has none.
func (m *Manager) Installed(ctx context.Context) ([]InstalledProvider, error) {
	inventory, err := m.inventory(ctx)
	if err != nil || len(inventory) == 0 {
		return nil, err
	}
	deployments, err := m.deployments(ctx)
	if err != nil {
		return nil, err
	}
	installed := make([]InstalledProvider, 0, len(inventory))
	for _, entry := range inventory {
		p := InstalledProvider{
			Provider:  releases.Provider{Name: entry.ProviderName, Type: releases.TypeOf(entry.GetProviderType()), Version: entry.Version},
			Namespace: entry.Namespace,
		}
		p.Ready, p.NotReady, p.Reason = m.health(ctx, deployments, entry)
		installed = append(installed, p)
	}
	slices.SortFunc(installed, func(a, b InstalledProvider) int {
		return cmp.Or(cmp.Compare(a.ClusterctlType().Order(), b.ClusterctlType().Order()), cmp.Compare(a.Name, b.Name))
	})
	return installed, nil
}

// health returns the state of the Deployments of one provider, and the name of one that is not ready.
func (m *Manager) health(
	ctx context.Context, deployments kube.Objects, entry clusterctlv1.Provider,
) (ready bool, notReady, reason string) {
	found := false
	for key, d := range deployments {
		if key.Namespace != entry.Namespace || d.GetLabels()[clusterv1.ProviderNameLabel] != entry.ManifestLabel() {
			continue
		}
		found = true
		if !kube.DeploymentReady(d) {
			return false, key.Name, cmp.Or(m.kube.Explain(ctx, d), "Deployment "+key.Name+" is not available yet")
		}
	}
	if !found {
		return false, "", "it has no Deployment"
	}
	return true, "", ""
}

// inventory returns clusterctl's Provider objects. There are none if clusterctl was never used.
func (m *Manager) inventory(ctx context.Context) ([]clusterctlv1.Provider, error) {
	list := &clusterctlv1.ProviderList{}
	if err := m.proxy.client.List(ctx, list); err != nil {
		if kube.IsAbsent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the installed providers: %w", err)
	}
	return list.Items, nil
}

// deployments returns all Deployments that clusterctl installed, including cert-manager's.
func (m *Manager) deployments(ctx context.Context) (kube.Objects, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kube.DeploymentKind.GroupVersion().WithKind("DeploymentList"))
	if err := m.kube.List(ctx, list, kube.MatchingLabels{clusterctlv1.ClusterctlLabel: ""}); err != nil {
		return nil, fmt.Errorf("list the providers' Deployments: %w", err)
	}
	deployments := kube.Objects{}
	for i := range list.Items {
		d := &list.Items[i]
		deployments[kube.Key{Namespace: d.GetNamespace(), Name: d.GetName()}] = d
	}
	return deployments, nil
}

// ProviderDeployments returns the Deployments of the installed providers. They act on Cluster API's objects and serve their webhooks.
func (m *Manager) ProviderDeployments(ctx context.Context) ([]appsv1.Deployment, error) {
	inventory, err := m.inventory(ctx)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for _, entry := range inventory {
		namespaces[entry.Namespace] = true
	}
	return m.deploymentsThat(ctx, func(d *appsv1.Deployment) bool {
		return namespaces[d.Namespace] && d.Labels[clusterv1.ProviderNameLabel] != ""
	})
}

// Unrecorded returns the Deployments that clusterctl or init has installed for providers that are not in clusterctl's inventory, because
// the installation was interrupted, or because somebody has deleted the entries.
func (m *Manager) Unrecorded(ctx context.Context) ([]appsv1.Deployment, error) {
	inventory, err := m.inventory(ctx)
	if err != nil {
		return nil, err
	}
	return m.deploymentsThat(ctx, func(d *appsv1.Deployment) bool {
		_, installed := d.Labels[clusterctlv1.ClusterctlLabel]
		label := d.Labels[clusterv1.ProviderNameLabel]
		return installed && label != "" && !slices.ContainsFunc(inventory, func(entry clusterctlv1.Provider) bool {
			return entry.Namespace == d.Namespace && entry.ManifestLabel() == label
		})
	})
}

// Injectors returns the Deployments that write certificates into webhook configurations. Those of cert-manager up to v1.11 replace a whole
// configuration, and drop fields that they do not know, such as match conditions.
func (m *Manager) Injectors(ctx context.Context) ([]appsv1.Deployment, error) {
	return m.deploymentsThat(ctx, func(d *appsv1.Deployment) bool { return d.Labels["app.kubernetes.io/component"] == "cainjector" })
}

func (m *Manager) deploymentsThat(ctx context.Context, wanted func(*appsv1.Deployment) bool) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := kube.Retry(ctx, func(ctx context.Context) error { return m.kube.List(ctx, list) })
	if err != nil {
		return nil, fmt.Errorf("list the Deployments: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return !wanted(&d) }), nil
}
