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

// plan is the work of an installation: the wanted state without the parts that are there and complete.
type plan struct {
	// wanted are the components of all providers, missing those of them that are not there, or not whole.
	wanted, missing []repository.Components
	// certs are cert-manager's objects; applyCerts tells whether they are to be applied, ownCerts whether cert-manager is
	// clusterctl's to look after.
	certs                []*unstructured.Unstructured
	applyCerts, ownCerts bool
	// upgrades are what runs in another version, in the order in which it is upgraded; certsUpgrade is cert-manager's among them, or nil.
	upgrades     []releases.Upgrade
	certsUpgrade *releases.Upgrade
	// certsWhole tells that all of the cert-manager that is to be upgraded is there.
	certsWhole bool
	inventory  []clusterctlv1.Provider
	// cutOff are Deployments of missing providers that an upgrade has stopped: they go, because a manifest need not say how many replicas
	// there are.
	cutOff []*unstructured.Unstructured
	// running are the Deployments that are as they are wanted to be; renewals are what changed values of variables make necessary.
	running  map[kube.Key]bool
	renewals []renewal
}

// plan reads components and cluster side by side and compares.
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
			return nil // so that all that is missing is told at once
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

// certManagerCRD is the CRD by which to tell whose cert-manager is in the cluster, or nil.
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

// hasCertManagerWebhooks tells whether cert-manager's webhook configurations are there. An installation applies them last.
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

// installedAs is the provider's entry in the inventory; nil where it has none. Another namespace than the wanted one is an error.
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

// allRun tells whether all Deployments of a provider run with the images and the tuning that components name.
func allRun(components repository.Components, deployments kube.Objects) bool {
	for _, obj := range components.Objs() {
		if obj.GroupVersionKind() == kube.DeploymentKind && !runs(&obj, deployments) {
			return false
		}
	}
	return true
}

// runs tells whether wanted, a Deployment, is there with the same images and tuning, rolled out and available.
func runs(wanted *unstructured.Unstructured, deployments kube.Objects) bool {
	there := deployments[kube.Key{Namespace: wanted.GetNamespace(), Name: wanted.GetName()}]
	return kube.DeploymentReady(there) && !stopped(there) && releases.SameTuning(there, wanted) && releases.SameImages(there, wanted)
}

// planCertManager decides the fate of a cert-manager that clusterctl looks after. It is applied if a part of it does not run, and upgraded
// from an older version. A newer version is left alone if it is complete, as clusterctl does. hooks tells that the webhook configurations
// are there, which an installation applies last.
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
	return diag.Errorf("put "+other+" or a newer version into fleet.yaml, and run this again",
		"install cert-manager %s: a part of version %s is installed", version, other)
}

// keepCertManager leaves an older cert-manager that is all there as it is.
func (p *plan) keepCertManager() {
	if p.certsUpgrade != nil && p.certsWhole {
		p.upgrades, p.certsUpgrade, p.applyCerts = p.upgrades[1:], nil, false
	}
}
