package capi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// plan is the work of an installation: the wanted state without the complete parts.
type plan struct {
	// wanted are the components of all providers. missing are those of providers that do not exist or are incomplete.
	wanted, missing []repository.Components
	// certs are cert-manager's objects. applyCerts means that they must be applied. ownCerts means that clusterctl manages the cert-manager in
	// the cluster.
	certs                []*unstructured.Unstructured
	applyCerts, ownCerts bool
	// upgrades are the necessary upgrades in order. certsUpgrade is cert-manager's upgrade among them, or nil.
	upgrades     []releases.Upgrade
	certsUpgrade *releases.Upgrade
	// certsWhole means that the cert-manager to upgrade is complete.
	certsWhole bool
	inventory  []clusterctlv1.Provider
	// cutOff are Deployments of missing providers that an interrupted upgrade has stopped. They are deleted first, because a manifest need not
	// set the number of replicas.
	cutOff []*unstructured.Unstructured
	// running are the Deployments that are in the wanted state. renewals are the changes because of new values of variables.
	running  map[kube.Key]bool
	renewals []renewal
}

// plan reads the components and the cluster in parallel, and compares them.
func (m *Manager) plan(ctx context.Context, source *releases.Source, providers []releases.Provider) (*plan, error) {
	p := &plan{wanted: make([]repository.Components, len(providers))}
	var inventory []clusterctlv1.Provider
	var deployments kube.Objects
	var certsVersion string
	var certsHooks bool
	var certsCRD *apiextensionsv1.CustomResourceDefinition

	group, readCtx := errgroup.WithContext(ctx)
	errs := make([]error, len(providers))
	for i, provider := range providers {
		group.Go(func() error {
			p.wanted[i], errs[i] = source.Filled(readCtx, provider)
			return nil // errs collects the errors, to report them together
		})
	}
	group.Go(func() (err error) { p.certs, certsVersion, err = source.CertManagerObjects(readCtx); return err })
	group.Go(func() (err error) { inventory, err = m.inventory(readCtx); return err })
	group.Go(func() (err error) { deployments, err = m.deployments(readCtx); return err })
	group.Go(func() (err error) { certsCRD, err = m.certManagerCRD(readCtx); return err })
	group.Go(func() (err error) { certsHooks, err = m.hasCertManagerWebhooks(readCtx); return err })
	err := group.Wait()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	var conflicts []error
	p.inventory = inventory
	p.ownCerts = certsCRD == nil || certsCRD.Labels[clusterctlv1.ClusterctlCoreLabel] == clusterctlv1.ClusterctlCoreLabelCertManagerValue
	if p.ownCerts {
		conflicts = append(conflicts, p.planCertManager(certsVersion, deployments, certsHooks || !hasWebhooks(p.certs)))
	}
	for _, components := range p.wanted {
		there, err := installedAs(components, inventory)
		switch {
		case err != nil:
			conflicts = append(conflicts, err)
		case there != nil && there.Version != components.Version():
			p.upgrades = append(p.upgrades, releases.Upgrade{
				Provider: releases.Provider{Name: components.Name(), Type: releases.TypeOf(components.Type()), Version: components.Version()},
				From:     there.Version,
			})
		case there == nil || !allRun(components, deployments):
			p.missing = append(p.missing, components)
			p.cutOff = append(p.cutOff, stoppedOf(components, deployments)...)
		}
	}
	if err := errors.Join(conflicts...); err != nil {
		return p, err
	}
	p.running = map[kube.Key]bool{}
	for _, components := range p.wanted {
		for _, obj := range kube.Pointers(components.Objs()) {
			if obj.GroupVersionKind() == kube.DeploymentKind && runs(obj, deployments) {
				p.running[kube.RefOf(obj).Key] = true
			}
		}
	}
	p.renewals, err = m.renewals(ctx, source, providers, p)
	return p, source.Hiding(err)
}

// certManagerCRD returns the CRD whose labels tell who manages cert-manager, or nil if there is none.
func (m *Manager) certManagerCRD(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := m.kube.Get(ctx, kube.Key{Name: "certificates.cert-manager.io"}, crd)
	switch {
	case err == nil:
		return crd, nil
	case kube.IsAbsent(err):
		return nil, nil
	}
	return nil, fmt.Errorf("look for cert-manager: %w", err)
}

// hasCertManagerWebhooks tells whether cert-manager's webhook configurations exist. An installation applies them last.
func (m *Manager) hasCertManagerWebhooks(ctx context.Context) (bool, error) {
	hooks := &metav1.PartialObjectMetadataList{}
	hooks.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfigurationList"))
	if err := m.kube.List(ctx, hooks, kube.MatchingLabels{
		clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelCertManagerValue,
	}); err != nil {
		return false, fmt.Errorf("look for cert-manager: %w", err)
	}
	return len(hooks.Items) > 0, nil
}

func hasWebhooks(objects []*unstructured.Unstructured) bool {
	return len(splitCertManager(objects).webhooks) > 0
}

// installedAs returns the provider's entry in the inventory, or nil. It fails if the provider is in another namespace than wanted.
func installedAs(components repository.Components, inventory []clusterctlv1.Provider) (*clusterctlv1.Provider, error) {
	wanted := components.InventoryObject()
	i := slices.IndexFunc(inventory, func(p clusterctlv1.Provider) bool { return p.SameAs(wanted) })
	if i < 0 {
		return nil, nil
	}
	there := &inventory[i]
	if there.Namespace != wanted.Namespace {
		name := releases.Provider{Name: there.ProviderName, Type: releases.TypeOf(there.GetProviderType())}
		return nil, diag.Errorf("", "install %s in namespace %s: it is installed in namespace %s", name, wanted.Namespace, there.Namespace)
	}
	return there, nil
}

// allRun tells whether all Deployments of a provider run with the images and the tuning of components.
func allRun(components repository.Components, deployments kube.Objects) bool {
	for _, obj := range components.Objs() {
		if obj.GroupVersionKind() == kube.DeploymentKind && !runs(&obj, deployments) {
			return false
		}
	}
	return true
}

// runs tells whether the Deployment wanted exists with the same images and tuning, and is rolled out and available.
func runs(wanted *unstructured.Unstructured, deployments kube.Objects) bool {
	there := deployments[kube.Key{Namespace: wanted.GetNamespace(), Name: wanted.GetName()}]
	return kube.DeploymentReady(there) && !stopped(there) && releases.SameTuning(there, wanted) && releases.SameImages(there, wanted)
}

// planCertManager plans the cert-manager that clusterctl manages. It is applied if a part of it does not run, and upgraded from an older
// version. A complete newer version stays, as in clusterctl. hooks means that the webhook configurations exist, which an installation
// applies last.
func (p *plan) planCertManager(version string, deployments kube.Objects, hooks bool) error {
	whole, other := hooks, ""
	p.applyCerts = !hooks
	for _, obj := range p.certs {
		if obj.GroupVersionKind() != kube.DeploymentKind {
			continue
		}
		d := deployments[kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}]
		p.applyCerts = p.applyCerts || !kube.DeploymentReady(d) || releases.OtherDigests(d, obj)
		if d == nil {
			whole = false
		} else if installed := d.GetAnnotations()[clusterctlv1.CertManagerVersionAnnotation]; installed != "" && installed != version {
			other = installed
		}
	}
	switch {
	case other == "":
		return nil
	case releases.IsOlder(other, version):
		p.upgrades = append(p.upgrades, releases.Upgrade{Provider: releases.Provider{Name: releases.CertManager, Version: version}, From: other})
		p.certsUpgrade = &p.upgrades[0]
		p.certsWhole = whole
		return nil
	}
	p.applyCerts = false
	if whole {
		return nil
	}
	return diag.Errorf("put "+other+" or a newer version into fleet.yaml, and run the command again",
		"install cert-manager %s: a part of version %s is installed", version, other)
}

// keepCertManager removes the upgrade of a complete cert-manager from the plan.
func (p *plan) keepCertManager() {
	if p.certsUpgrade != nil && p.certsWhole {
		p.upgrades, p.certsUpgrade, p.applyCerts = p.upgrades[1:], nil, false
	}
}
