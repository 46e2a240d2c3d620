package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// installPlan is what will run on the management cluster, every version chosen.
type installPlan struct {
	source    *capi.Source
	providers []capi.Provider
	// origins say where the values of the source's variables come from.
	origins map[string]capi.Origin
	// variables are all values; those of vault stand in until Vault is asked.
	variables map[string]string
	vault     []v1alpha1.Variable
	// What follows is there once the manifests are read.
	flux *flux.Components
	// images of a bundle that the node needs; nil without a bundle.
	images host.ImageArchive
}

// chooseVersions fills in the versions that fleet.yaml leaves open and finds out what the providers lack. It comes before anything is
// created, and is quick: what takes long of the manifests is read while the host starts.
func (s *session) chooseVersions(ctx context.Context, detail func(string)) error {
	if s.bundle != nil {
		detail("unpacking the bundle's manifests")
		if err := s.unpackManifests(ctx); err != nil {
			return err
		}
	}
	detail("reading provider components")
	plan := &installPlan{}
	if err := s.planProviders(ctx, plan); err != nil {
		return err
	}
	if err := s.pinVersions(plan.providers); err != nil {
		return err
	}
	s.plan = plan
	return nil
}

// readManifests gets hold of all that will be applied, from the bundle or from the releases: seconds of work and of downloads.
func (s *session) readManifests(ctx context.Context, _ func(string)) error {
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.plan.source.Prefetch(readCtx, s.plan.providers) })
	group.Go(func() error { return s.planFlux(readCtx, s.plan) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.checkTuning(ctx); err != nil {
		return err
	}
	if err := s.lockManifests(ctx); err != nil {
		return err
	}
	if s.bundle != nil {
		if err := s.planImages(ctx, s.plan); err != nil {
			return err
		}
	}
	close(s.manifestsRead)
	return nil
}

// bundleImages are the images that the node gets, once the manifests that name them are read.
func (s *session) bundleImages(ctx context.Context) (host.ImageArchive, error) {
	if err := wait(ctx, s.manifestsRead); err != nil {
		return nil, err
	}
	return s.plan.images, nil
}

func (s *session) planProviders(ctx context.Context, plan *installPlan) error {
	declared := components.DeclaredProviders(s.mgmt.Providers)
	resolved, err := s.variables(ctx)
	if err != nil {
		return err
	}
	variables := maps.Clone(resolved.values)
	plan.origins, plan.vault = maps.Clone(resolved.origins), resolved.vault
	if err := s.preferLocked(); err != nil {
		return err
	}
	source, err := s.providerSource(declared, variables, s.tuning(ctx)) //nolint:contextcheck // it reads nothing yet
	if err != nil {
		return err
	}
	if s.mgmt.CertManager.Version, err = source.CertManagerVersion(); err != nil {
		return err
	}
	if plan.providers, err = source.Resolve(ctx, declared); err != nil {
		return err
	}
	found, err := s.environmentFor(ctx, source, plan.providers, variables)
	if err != nil {
		return err
	}
	maps.Copy(variables, found)
	for name := range found {
		plan.origins[name] = originOf(fromEnvironment(name), found[name])
	}
	plan.variables = variables
	if plan.source, err = source.WithVariables(variables); err != nil { //nolint:contextcheck // it reads nothing yet
		return err
	}
	return plan.source.CheckVariables(ctx, plan.providers)
}

func (s *session) providerSource(declared []capi.Provider, variables map[string]string, tuning []kube.Tuning) (*capi.Source, error) {
	return capi.NewSource(capi.SourceOptions{
		Providers: declared, Variables: variables, Repository: s.providerFolder(),
		CertManagerVersion: s.mgmt.CertManager.Version, CertManagerURL: s.mgmt.CertManager.URL,
		Tuning: tuning,
	})
}

// providerFolder is laid out as the provider repositories are, with cert-manager beside the providers; "" without a bundle.
func (s *session) providerFolder() string {
	if s.bundle == nil {
		return ""
	}
	return filepath.Join(s.manifests, "providers")
}

// unpackManifests writes the bundle's manifests, verified, to where their readers look.
func (s *session) unpackManifests(ctx context.Context) error {
	for _, part := range []struct{ dir, prefix string }{
		{s.manifests, "providers"}, {s.manifests, "flux"}, {s.providerFolder(), "cert-manager"},
	} {
		if err := s.bundle.WriteFiles(ctx, part.dir, part.prefix); err != nil {
			return err
		}
	}
	return nil
}

// environmentFor looks up, in the environment, the variables that components name and fleet.yaml says nothing about. No other part of
// the environment is handed to them.
func (s *session) environmentFor(ctx context.Context, source *capi.Source, providers []capi.Provider, known map[string]string) (map[string]string, error) {
	found := map[string]string{}
	for _, p := range providers {
		named, err := source.Variables(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, v := range named {
			if _, ok := known[v.Name]; ok {
				continue
			}
			if value, _ := s.LookupEnv(v.Name); value != "" {
				found[v.Name] = value
			}
		}
	}
	return found, nil
}

func (s *session) planFlux(ctx context.Context, plan *installPlan) (err error) {
	plan.flux, err = flux.GenerateComponents(ctx, s.fluxOptions())
	return err
}

func (s *session) fluxOptions() flux.ComponentsOptions {
	o := s.fleet.Spec.Flux
	options := flux.ComponentsOptions{
		Version: o.Version, Components: o.Components, NetworkPolicy: *o.NetworkPolicy, Registry: o.Registry, ReleasesURL: strings.TrimSuffix(o.URL, "/"),
		Tuning: tuningOf(s.mgmt),
	}
	if s.bundle != nil {
		options.ManifestsBase = filepath.Join(s.manifests, "flux", o.Version)
	}
	return options
}

// planImages finds the images of the plan in the bundle. One that is missing is said now: later it would be a pod that never
// starts.
func (s *session) planImages(ctx context.Context, plan *installPlan) error {
	needed, err := plan.source.Images(ctx, plan.providers)
	if err != nil {
		return err
	}
	needed = append(needed, plan.flux.Images...)
	for _, ref := range needed {
		if _, err := s.bundle.Image(ref); err != nil {
			return diag.Wrap("find image "+ref+" in the bundle "+s.opts.Bundle, err, "make a bundle for this fleet: fleetctl bundle create")
		}
	}
	if s.traits().TakesImages {
		plan.images = s.bundle.Archive(needed...)
	}
	return nil
}

// pinVersions writes the chosen versions into fleet.yaml where it leaves them open: the next run, and every other machine, installs the
// same.
func (s *session) pinVersions(chosen []capi.Provider) error {
	if v := s.mgmt.CertManager.Version; v != "" {
		edited, err := v1alpha1.SetCertManagerVersion(s.fleetFile, s.mgmt.Name, v)
		if err != nil {
			return err
		}
		s.fleetFile = edited
	}
	for _, p := range chosen {
		providerType := v1alpha1.ProviderType(p.Type)
		edited, err := v1alpha1.SetProviderVersion(s.fleetFile, s.mgmt.Name, providerType, p.Name, p.Version)
		if err != nil {
			return err
		}
		s.fleetFile = edited
		for i := range s.mgmt.Providers {
			if have := &s.mgmt.Providers[i]; have.Name == p.Name && have.Type == providerType {
				have.Version = p.Version
			}
		}
	}
	return nil
}

// preferLocked chooses the cert-manager that fleet.lock knows where fleet.yaml leaves it open, and there is no bundle without it.
func (s *session) preferLocked() error {
	certs := &s.mgmt.CertManager
	if certs.Version != "" {
		return nil
	}
	lock, err := v1alpha1.LoadLock(filepath.Join(s.opts.Dir, v1alpha1.LockFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	locked := components.LockedVersion(lock, *certs)
	if s.bundle != nil {
		if _, err := os.Stat(filepath.Join(s.providerFolder(), "cert-manager", locked)); err != nil {
			return nil //nolint:nilerr // the bundle's own it is then
		}
	}
	certs.Version = locked
	return nil
}
