// Package capi installs Cluster API and its providers, reads what runs on a management cluster, and moves it to another. It is the only
// package that uses clusterctl's library. Components, inventory and move are clusterctl's own, so that stock `clusterctl upgrade`, `move`
// and `delete` work on its installations. pkg/capi/releases finds and reads what Install installs. pkg/kube applies objects and waits for
// them.
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

// Manager works on the Cluster API of one management cluster. It is safe for use by several goroutines.
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

// As is the Manager through another client of the same cluster. It knows the kinds that m knows.
func (m *Manager) As(client *kube.Client) (*Manager, error) {
	other, err := New(client)
	if err != nil {
		return nil, err
	}
	other.Members = m.Members.As(client)
	return other, nil
}

// clusterctl is clusterctl's library for the cluster, with components from source, which may be nil where none are needed.
func (m *Manager) clusterctl(source *releases.Source) cluster.Client {
	options := []cluster.Option{cluster.InjectProxy(m.proxy)}
	if source == nil {
		return cluster.New(cluster.Kubeconfig{}, nil, options...)
	}
	return cluster.New(cluster.Kubeconfig{}, source.Config(), append(options, cluster.InjectRepositoryFactory(repositoriesOf(source)))...)
}

// repositoriesOf gives clusterctl's library the repositories of source.
func repositoriesOf(source *releases.Source) cluster.RepositoryClientFactory {
	return func(ctx context.Context, p config.Provider, _ config.Client, _ ...repository.Option) (repository.Client, error) {
		return source.Repository(ctx, releases.Provider{Name: p.Name(), Type: releases.TypeOf(p.Type())})
	}
}

// InstalledProvider is a provider in clusterctl's inventory.
type InstalledProvider struct {
	releases.Provider
	// Namespace that it runs in.
	Namespace string
	// Ready tells that all its Deployments are rolled out and available; Reason says why not.
	Ready  bool
	Reason string
}

// Installed lists the providers in the cluster's inventory with their health, in the order of WithDefaults. A cluster without
// Cluster API has none.
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
		p.Ready, p.Reason = m.health(ctx, deployments, entry)
		installed = append(installed, p)
	}
	slices.SortFunc(installed, func(a, b InstalledProvider) int {
		return cmp.Or(cmp.Compare(a.ClusterctlType().Order(), b.ClusterctlType().Order()), cmp.Compare(a.Name, b.Name))
	})
	return installed, nil
}

// health looks at the Deployments of one provider.
func (m *Manager) health(ctx context.Context, deployments kube.Objects, entry clusterctlv1.Provider) (ready bool, reason string) {
	found := false
	for key, d := range deployments {
		if key.Namespace != entry.Namespace || d.GetLabels()[clusterv1.ProviderNameLabel] != entry.ManifestLabel() {
			continue
		}
		found = true
		if !kube.DeploymentReady(d) {
			return false, cmp.Or(m.kube.Explain(ctx, d), "Deployment "+key.Name+" is not available yet")
		}
	}
	if !found {
		return false, "it has no Deployment"
	}
	return true, ""
}

// inventory are clusterctl's Provider objects; none where clusterctl was never used.
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

// deployments are all that clusterctl installed, cert-manager's included.
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

// ProviderDeployments are the Deployments of the installed providers: what acts on Cluster API's objects, and answers for their webhooks.
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

// Injectors are the Deployments that write certificates into webhook configurations. cert-manager's, up to v1.11, writes them whole,
// without the fields that it does not know, match conditions among them.
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
