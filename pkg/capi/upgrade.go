package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/messages"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// providerPatience is the time in which an upgraded provider must become healthy.
const providerPatience = 5 * time.Minute

// Upgrades returns the upgrades that Install would make, in order: cert-manager, core, bootstrap, control plane, infrastructure and the
// rest. It returns an error for a version older than the running one, for versions whose contracts do not fit together, and for an upgrade
// over too many versions at once.
func (m *Manager) Upgrades(ctx context.Context, source *releases.Source, providers []releases.Provider) ([]releases.Upgrade, error) {
	todo, err := m.plan(ctx, source, providers)
	if err != nil {
		return nil, err
	}
	return todo.upgrades, m.checkUpgrades(ctx, source, providers, todo)
}

// checkUpgrades checks all upgrades of a plan before anything is changed. clusterctl checks each again before it upgrades it.
func (m *Manager) checkUpgrades(ctx context.Context, source *releases.Source, providers []releases.Provider, todo *plan) error {
	if len(todo.upgrades) == 0 {
		return nil
	}
	var against []error
	for _, u := range todo.upgrades {
		against = append(against, releases.CheckUpgrade(u))
	}
	if err := errors.Join(against...); err != nil {
		return err
	}
	contracts := make([]string, len(providers))
	group, readCtx := errgroup.WithContext(ctx)
	for i, p := range providers {
		group.Go(func() (err error) {
			contracts[i], err = source.Contract(readCtx, p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, p := range providers {
		switch {
		case releases.Fits(p.Type, contracts[i]):
		case p.Type == releases.Core:
			against = append(against, diag.Errorf("choose a version with that contract, or use a release of fleetctl for the other contract",
				"%s has the contract %s: this fleetctl upgrades to %s", p, contracts[i], releases.CoreContract))
		default:
			against = append(against, diag.Errorf("choose a version of it that has the contract "+releases.CoreContract,
				"%s has the contract %s, but Cluster API of this version does not work with it", p, contracts[i]))
		}
	}
	return errors.Join(against...)
}

// upgrade upgrades the running parts to the wanted versions, one after the other: first cert-manager, then the providers in clusterctl's
// order. Each must be healthy before the next. If upgrade is killed at any point, it can be run again. clusterctl adds a provider's new
// version to the inventory after it has applied all its objects. If a provider is in the inventory but not healthy, upgrade completes it
// before the next one.
func (m *Manager) upgrade(ctx context.Context, source *releases.Source, todo *plan, run *installation) error {
	last := -1 // the index of the last provider that is upgraded
	for i, components := range todo.wanted {
		if todo.upgradeOf(components) != nil {
			last = i
		}
	}
	if todo.certsUpgrade != nil {
		run.detail("upgrading " + todo.certsUpgrade.String())
		if err := m.upgradeCertManager(ctx, todo, run); err != nil {
			return fmt.Errorf("upgrade %s: %w", todo.certsUpgrade, err)
		}
	}
	upgrader, err := m.upgrader(ctx, source, todo)
	if err != nil {
		return err
	}
	if err := m.kube.Delete(ctx, todo.cutOff, kube.DeleteOptions{Wait: true}); err != nil {
		return err
	}
	for _, components := range todo.wanted[:last+1] {
		step := todo.upgradeOf(components)
		switch {
		case step != nil:
			run.detail("upgrading " + step.String())
			if err := m.upgradeProvider(ctx, upgrader, components, *step, run); err != nil {
				return diag.Wrap("upgrade "+step.String(), err,
					"the providers after it are unchanged; remove the cause, or put a version without the fault into fleet.yaml, and run `fleetctl "+
						"upgrade apply` again")
			}
		case todo.isMissing(components) && inInventory(components, todo.inventory):
			if err := m.complete(ctx, components, run); err != nil {
				return fmt.Errorf("complete %s before others are upgraded: %w", components.ManifestLabel(), err)
			}
		}
	}
	return nil
}

// upgradeProvider lets clusterctl replace one provider, and waits until it is healthy.
func (m *Manager) upgradeProvider(
	ctx context.Context,
	upgrader cluster.ProviderUpgrader,
	components repository.Components,
	step releases.Upgrade,
	run *installation,
) error {
	if run.podsRun != nil {
		if err := run.podsRun(ctx); err != nil {
			return err
		}
	}
	stop := messages.Listen(run.detail)
	defer stop()
	entry := components.InventoryObject()
	item := cluster.UpgradeItem{Provider: entry, NextVersion: step.Version}
	item.Version = step.From
	if err := upgrader.ApplyCustomPlan(ctx, cluster.UpgradeOptions{}, item); err != nil {
		return err
	}
	return m.healthy(ctx, components, run)
}

// complete applies the parts of a provider that an earlier run has not applied, and waits until the provider is healthy.
func (m *Manager) complete(ctx context.Context, components repository.Components, run *installation) error {
	run.detail("completing " + components.ManifestLabel())
	if err := run.provider(ctx, components, newGate(nil)); err != nil {
		return err
	}
	return m.healthy(ctx, components, run)
}

// healthy waits until all Deployments of a provider are available and the webhooks answer. It does not wait for a halted provider, which
// can do neither.
func (m *Manager) healthy(ctx context.Context, components repository.Components, run *installation) error {
	if run.halted {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, providerPatience, fmt.Errorf("it is not healthy after %s", providerPatience))
	defer cancel()
	if err := m.kube.WaitDeploymentsReady(ctx, kube.DeploymentKeys(kube.Pointers(components.Objs())), run.detail); err != nil {
		return err
	}
	run.detail("waiting until the webhooks answer")
	return m.WaitWebhooks(ctx, run.detail)
}

// upgradeOf returns the upgrade of a provider, or nil if the provider stays.
func (p *plan) upgradeOf(components repository.Components) *releases.Upgrade {
	i := slices.IndexFunc(p.upgrades, func(u releases.Upgrade) bool {
		return !u.IsCertManager() && u.Name == components.Name() && u.ClusterctlType() == components.Type()
	})
	if i < 0 {
		return nil
	}
	return &p.upgrades[i]
}

func (p *plan) isMissing(components repository.Components) bool {
	return slices.ContainsFunc(p.missing, func(c repository.Components) bool { return c.ManifestLabel() == components.ManifestLabel() })
}

// upgradeCertManager first migrates the objects that are stored in versions that the new cert-manager no longer has. Then it deletes the
// old Deployments, because their selectors cannot be changed, and installs the new cert-manager. Last it removes objects that only the old
// cert-manager had.
func (m *Manager) upgradeCertManager(ctx context.Context, todo *plan, run *installation) error {
	if err := cluster.NewCRDMigrator(m.proxy.client.WithWatch).Run(ctx, values(todo.certs)); err != nil {
		return fmt.Errorf("migrate its objects: %w", err)
	}
	old, err := m.proxy.ListResources(
		ctx,
		map[string]string{clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelCertManagerValue},
		certManagerNamespaces...)
	if err != nil {
		return fmt.Errorf("list its objects: %w", err)
	}
	if err := m.remove(ctx, old, func(ref kube.Ref) bool { return ref.GroupVersionKind == kube.DeploymentKind }); err != nil {
		return err
	}
	certs := &plan{certs: todo.certs, applyCerts: true, ownCerts: true}
	if err := run.apply(ctx, certs); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, providerPatience, fmt.Errorf("it is not healthy after %s", providerPatience))
	defer cancel()
	if err := m.kube.WaitDeploymentsReady(ctx, deploymentKeys(certs), run.detail); err != nil {
		return err
	}
	if err := m.WaitWebhooks(ctx, run.detail); err != nil {
		return err
	}
	wanted := map[kube.Ref]bool{}
	for _, obj := range todo.certs {
		wanted[versionless(kube.RefOf(obj))] = true
	}
	return m.remove(ctx, old, func(ref kube.Ref) bool { return !preserved(ref) && !wanted[versionless(ref)] })
}
