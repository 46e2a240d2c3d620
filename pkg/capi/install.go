package capi

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	clusterctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/config"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ReplicasMark on a Deployment that was stopped, or made without replicas, has the number of replicas to start it with.
const ReplicasMark = "fleetctl.dev/handover-replicas"

// InstallOptions are the options of Install.
type InstallOptions struct {
	// Providers are the providers to install as Source.Resolve returns them: with versions, core first.
	Providers []releases.Provider
	// Detail, if not nil, is called with each line of progress.
	Detail func(string)
	// PodsRun, if not nil, returns when pods can run and their images exist. Install applies Deployments only then, and everything else
	// before: Kubernetes retries a pod that starts too early after longer and longer pauses.
	PodsRun func(ctx context.Context) error
	// BeforeUpgrade is called with all upgrades before the first one. It returns when the upgrades may begin, for example after a backup.
	// Without it, Install refuses to upgrade.
	BeforeUpgrade func(ctx context.Context, upgrades []releases.Upgrade) error
	// Origins are the sources of the values of the variables, by variable. Install records them on the cluster, and Held reads them.
	Origins map[string]credentials.Origin
	// Halted installs the providers' Deployments without replicas, and does not wait for them: objects of the providers can be stored, but no
	// provider acts on them. Each Deployment has its number of replicas in ReplicasMark.
	Halted bool
}

// InstallResult is the result of Install.
type InstallResult struct {
	// Installed are the providers that it installed or completed.
	Installed []releases.Provider
	// CertManager tells whether it installed or completed cert-manager.
	CertManager bool
	// Upgraded are the upgrades that it made.
	Upgraded []releases.Upgrade
	// Renewed are the providers that got new values for their variables.
	Renewed []Renewed
}

// Install installs the providers, and cert-manager if the cluster has none. It returns when all their Deployments are available and their
// webhooks answer. It does not change complete parts, so it can be run again after a kill at any point. It first upgrades providers that
// run in another version; see BeforeUpgrade. If a provider's variables have new values, it writes them into the provider's objects, and
// restarts the Deployments of the provider that read them only at their start. Before it changes anything, it refuses a version older than
// the installed one, providers that do not fit together, and variables without a value.
func (m *Manager) Install(ctx context.Context, source *releases.Source, opts InstallOptions) (*InstallResult, error) {
	detail := opts.Detail
	if detail == nil {
		detail = func(string) {}
	}
	detail("reading provider components")
	todo, err := m.planFor(ctx, source, opts)
	if err != nil {
		return nil, err
	}
	run := &installation{kube: m.kube, detail: detail, podsRun: opts.PodsRun, halted: opts.Halted, ownCerts: todo.ownCerts}
	if opts.BeforeUpgrade == nil {
		todo.keepCertManager()
	}
	upgraded := todo.upgrades
	if len(upgraded) > 0 {
		if todo, err = m.upgradeFirst(ctx, source, opts, todo, run); err != nil {
			return nil, err
		}
	}
	if len(todo.missing) > 0 {
		if err := m.validate(ctx, source, todo.missing); err != nil {
			return nil, err
		}
	}
	if err := m.kube.Delete(ctx, todo.cutOff, kube.DeleteOptions{Wait: true}); err != nil {
		return nil, err
	}
	if err := m.announce(ctx, todo.renewals); err != nil {
		return nil, err
	}
	result := &InstallResult{CertManager: todo.applyCerts, Upgraded: upgraded}
	if err = run.apply(ctx, todo); err == nil {
		err = m.renewAll(ctx, todo.renewals, result, detail)
	}
	err = source.Hiding(err)
	if opts.Halted {
		return result, err
	}
	if err == nil || ctx.Err() != nil { // after a timeout, the Deployments that are not ready say why
		err = errors.Join(err, m.kube.WaitDeploymentsReady(ctx, deploymentKeys(todo), detail))
	}
	if err != nil {
		return nil, err
	}
	detail("waiting until the webhooks answer")
	if err := m.WaitWebhooks(ctx, detail); err != nil {
		return nil, err
	}
	if err := m.keepHeld(ctx, source, opts.Providers, opts.Origins); err != nil {
		return nil, source.Hiding(err)
	}
	for _, c := range todo.missing {
		result.Installed = append(result.Installed, releases.Provider{
			Name: c.Name(), Type: releases.TypeOf(c.Type()), Version: c.Version(), URL: c.URL(),
		})
	}
	return result, nil
}

// upgradeFirst upgrades the running providers to the wanted versions, and returns the remaining plan.
func (m *Manager) upgradeFirst(
	ctx context.Context,
	source *releases.Source,
	opts InstallOptions,
	todo *plan,
	run *installation,
) (*plan, error) {
	if opts.BeforeUpgrade == nil {
		var against []error
		for _, u := range todo.upgrades {
			name := releases.Provider{Name: u.Name, Type: u.Type}
			against = append(against, diag.Errorf("choose "+u.From+", or upgrade it first: `fleetctl upgrade plan` shows which versions fit",
				"install %s %s: version %s is installed", name, u.Version, u.From))
		}
		return nil, errors.Join(against...)
	}
	if err := m.checkUpgrades(ctx, source, opts.Providers, todo); err != nil {
		return nil, err
	}
	if err := opts.BeforeUpgrade(ctx, todo.upgrades); err != nil {
		return nil, err
	}
	if err := m.upgrade(ctx, source, todo, run); err != nil {
		return nil, err
	}
	return m.planFor(ctx, source, opts)
}

// planFor returns the plan of an installation, with Deployments halted if the options say so.
func (m *Manager) planFor(ctx context.Context, source *releases.Source, opts InstallOptions) (*plan, error) {
	todo, err := m.plan(ctx, source, opts.Providers)
	if err != nil || !opts.Halted {
		return todo, err
	}
	for _, components := range todo.wanted {
		for _, obj := range kube.Pointers(components.Objs()) {
			if obj.GroupVersionKind() != kube.DeploymentKind {
				continue
			}
			if err := halted(obj); err != nil {
				return nil, fmt.Errorf("halt %s: %w", kube.RefOf(obj), err)
			}
		}
	}
	return todo, nil
}

// validate lets clusterctl check that the missing providers fit the installed ones. clusterctl needs the CRD of its inventory for that.
func (m *Manager) validate(ctx context.Context, source *releases.Source, missing []repository.Components) error {
	objects, err := kube.ParseYAML(clusterctlconfig.ClusterctlAPIManifest)
	if err != nil {
		return fmt.Errorf("read clusterctl's inventory CRD: %w", err)
	}
	for _, obj := range objects {
		kube.AddLabels(obj, map[string]string{clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue})
	}
	if _, err := m.kube.Apply(ctx, objects, kube.ApplyOptions{ForceConflicts: true}); err != nil {
		return fmt.Errorf("install clusterctl's inventory CRD: %w", err)
	}
	inventory, err := m.inventory(ctx)
	if err != nil {
		return err
	}
	installer := m.clusterctl(source).ProviderInstaller()
	for _, components := range missing {
		if !inInventory(components, inventory) { // an incomplete provider was checked when it was added
			installer.Add(components)
		}
	}
	if err := installer.Validate(ctx); err != nil {
		return fmt.Errorf("check that the providers fit together: %w", err)
	}
	return nil
}

func inInventory(components repository.Components, inventory []clusterctlv1.Provider) bool {
	wanted := components.InventoryObject()
	for _, p := range inventory {
		if p.SameAs(wanted) {
			return true
		}
	}
	return false
}

// parts are a provider's components in the order in which they are applied.
type parts struct {
	namespaces, base, custom, deployments []*unstructured.Unstructured
}

func split(objects []unstructured.Unstructured) parts {
	var p parts
	for i := range objects {
		obj := &objects[i]
		switch {
		case obj.GroupVersionKind() == kube.DeploymentKind:
			p.deployments = append(p.deployments, obj)
		case kube.IsCustom(obj):
			p.custom = append(p.custom, obj)
		case obj.GetKind() == "Namespace":
			p.namespaces = append(p.namespaces, obj)
		default:
			p.base = append(p.base, obj)
		}
	}
	return p
}

// certManagerParts are cert-manager's objects, in the order in which they are applied.
type certManagerParts struct {
	base, deployments, webhooks []*unstructured.Unstructured
}

func splitCertManager(objects []*unstructured.Unstructured) certManagerParts {
	var p certManagerParts
	for _, obj := range objects {
		switch {
		case obj.GroupVersionKind().Group == admissionv1.GroupName:
			p.webhooks = append(p.webhooks, obj)
		case obj.GroupVersionKind() == kube.DeploymentKind:
			p.deployments = append(p.deployments, obj)
		default:
			p.base = append(p.base, obj)
		}
	}
	return p
}

// deploymentKeys returns the keys of all Deployments that must be available in the end.
func deploymentKeys(todo *plan) []kube.Key {
	var keys []kube.Key
	for _, components := range todo.wanted {
		p := split(components.Objs())
		keys = append(keys, kube.DeploymentKeys(p.deployments)...)
	}
	if todo.ownCerts {
		keys = append(keys, kube.DeploymentKeys(todo.certs)...)
	}
	return keys
}
