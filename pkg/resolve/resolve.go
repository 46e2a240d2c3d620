// Package resolve says what is to run on a management cluster: it chooses the versions that fleet.yaml leaves open, reads the manifests of
// these versions, and holds manifests and images to fleet.lock.
package resolve

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/variables"
)

// Versions is what will run on the management cluster, every version chosen.
type Versions struct {
	// fleet has the versions that fleet.yaml leaves open, and fleetFile is that file with them.
	fleet     *v1alpha1.Fleet
	FleetFile []byte
	Source    *releases.Source
	Providers []releases.Provider
	// Origins say where the values of the source's variables come from.
	Origins map[string]credentials.Origin
	// Variables are all values. Placeholders stand for values from Vault until Vault is asked.
	Variables map[string]string
	Vault     []v1alpha1.Variable
}

// Manifests is all that will be applied to the management cluster, read.
type Manifests struct {
	*Versions
	Flux   *flux.Components
	locked *v1alpha1.Lock
	// Images of a bundle that the node needs; nil without a bundle. pinned are those by which the images are run that go by digests.
	Images host.ImageArchive
	pinned []string
}

// Choose fills in the versions that fleet.yaml leaves open and finds out what the providers lack. It comes before anything is
// created, and is quick: what takes long of the manifests is read while the host starts.
func Choose(ctx context.Context, s *session.Session, detail func(string)) (*Versions, error) {
	if s.Bundle != nil {
		detail("unpacking the bundle's manifests")
		if err := unpackManifests(ctx, s); err != nil {
			return nil, err
		}
	}
	detail("reading provider components")
	certManager, err := preferLocked(s)
	if err != nil {
		return nil, err
	}
	v := &Versions{}
	if certManager.Version, err = planProviders(ctx, s, v, certManager); err != nil {
		return nil, err
	}
	if v.FleetFile, err = pinVersions(s, v.Providers, certManager.Version); err != nil {
		return nil, err
	}
	v.fleet = withVersions(s, v.Providers, certManager.Version)
	return v, nil
}

// Read gets hold of all that will be applied, from the bundle or from the releases: seconds of work and of downloads.
func Read(ctx context.Context, s *session.Session, v *Versions) (*Manifests, error) {
	m := &Manifests{Versions: v}
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return v.Source.Prefetch(readCtx, v.Providers) })
	group.Go(func() (err error) {
		m.Flux, err = flux.GenerateComponents(readCtx, FluxOptions(s))
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := checkTuning(ctx, m); err != nil {
		return nil, err
	}
	if err := lockManifests(ctx, s, m); err != nil {
		return nil, err
	}
	if err := lockImages(ctx, s, m); err != nil {
		return nil, err
	}
	if s.Bundle != nil {
		if err := planImages(ctx, s, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// planProviders fills v in, and returns the version of cert-manager that goes with it.
func planProviders(ctx context.Context, s *session.Session, v *Versions, certManager v1alpha1.CertManager) (string, error) {
	resolved, err := s.Variables(ctx)
	if err != nil {
		return "", err
	}
	v.Variables = maps.Clone(resolved.Values)
	v.Origins, v.Vault = maps.Clone(resolved.Origins), resolved.Vault
	source, version, err := fitting(ctx, s, v, s.Tuning(ctx), certManager)
	if err != nil {
		return "", err
	}
	found, err := s.EnvironmentFor(ctx, source, v.Providers, v.Variables)
	if err != nil {
		return "", err
	}
	maps.Copy(v.Variables, found)
	for name := range found {
		v.Origins[name] = variables.OriginOf(variables.FromEnvironment(name), found[name])
	}
	if v.Source, err = source.WithVariables(v.Variables); err != nil { //nolint:contextcheck // it reads nothing yet
		return "", err
	}
	return version, v.Source.CheckVariables(ctx, v.Providers)
}

// fitting chooses v's providers, and returns where they come from, and the version of cert-manager that goes with them.
func fitting(
	ctx context.Context, s *session.Session, v *Versions, tuning []kube.Tuning, certManager v1alpha1.CertManager,
) (source *releases.Source, version string, err error) {
	declared := components.DeclaredProviders(s.Mgmt.Providers)
	if source, err = ProviderSource(s, declared, v.Variables, tuning, certManager); err != nil { //nolint:contextcheck // it reads nothing yet
		return nil, "", err
	}
	if version, err = source.CertManagerVersion(); err != nil {
		return nil, "", err
	}
	v.Providers, err = source.Resolve(ctx, declared)
	return source, version, err
}

// ProviderSource is where the providers and cert-manager come from: their releases, or the bundle.
func ProviderSource(
	s *session.Session, declared []releases.Provider, variables map[string]string, tuning []kube.Tuning, certManager v1alpha1.CertManager,
) (*releases.Source, error) {
	return releases.NewSource(releases.SourceOptions{
		Providers: declared, Variables: variables, Repository: providerFolder(s),
		CertManagerVersion: certManager.Version, CertManagerURL: certManager.URL,
		Tuning: tuning, CPURequest: s.Traits().CPURequest,
	})
}

// providerFolder is laid out as the provider repositories are, with cert-manager beside the providers; "" without a bundle.
func providerFolder(s *session.Session) string {
	if s.Bundle == nil {
		return ""
	}
	return filepath.Join(s.ManifestDir, "providers")
}

// unpackManifests writes the bundle's manifests, verified, to where their readers look.
func unpackManifests(ctx context.Context, s *session.Session) error {
	for _, part := range []struct{ dir, prefix string }{
		{s.ManifestDir, "providers"}, {s.ManifestDir, "flux"}, {providerFolder(s), "cert-manager"},
	} {
		if err := s.Bundle.WriteFiles(ctx, part.dir, part.prefix); err != nil {
			return err
		}
	}
	return nil
}

// FluxOptions say which Flux fleet.yaml declares, and where its manifests come from.
func FluxOptions(s *session.Session) flux.ComponentsOptions {
	o := s.Fleet.Spec.Flux
	options := flux.ComponentsOptions{
		Version: o.Version, Components: o.Components, NetworkPolicy: *o.NetworkPolicy, Registry: o.Registry,
		ReleasesURL: strings.TrimSuffix(o.URL, "/"),
		Tuning:      session.TuningOf(s.Mgmt),
	}
	if s.Bundle != nil {
		options.ManifestsBase = filepath.Join(s.ManifestDir, "flux", o.Version)
	}
	return options
}

// planImages finds the images of the manifests in the bundle. One that is missing is said now: later it would be a pod that never
// starts.
func planImages(ctx context.Context, s *session.Session, m *Manifests) error {
	needed, err := m.Source.Images(ctx, m.Providers)
	if err != nil {
		return err
	}
	for _, image := range m.Flux.Images {
		needed = append(needed, image.From)
	}
	for _, ref := range needed {
		if _, err := s.Bundle.Image(ref); err != nil {
			return diag.Wrap("find image "+ref+" in the bundle "+s.Opts.Bundle, err, "make a bundle for this fleet: fleetctl bundle create")
		}
	}
	if !s.Traits().TakesImages {
		return nil
	}
	for _, ref := range m.pinned { // nodes find an image by the name that a pod has for it, and by no other
		if _, err := s.Bundle.Image(ref); err == nil {
			needed = append(needed, ref)
		}
	}
	m.Images = s.Bundle.Archive(needed...)
	return nil
}

// pinVersions is fleet.yaml with the chosen versions where it leaves them open: the next run, and every other machine, installs the same.
func pinVersions(s *session.Session, chosen []releases.Provider, certManager string) ([]byte, error) {
	file := s.FleetFile
	var err error
	if certManager != "" {
		if file, err = v1alpha1.SetCertManagerVersion(file, s.DeclaredAs(), certManager); err != nil {
			return nil, err
		}
	}
	for _, p := range chosen {
		if file, err = v1alpha1.SetProviderVersion(file, s.DeclaredAs(), v1alpha1.ProviderType(p.Type), p.Name, p.Version); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// withVersions is the fleet as pinVersions writes it.
func withVersions(s *session.Session, chosen []releases.Provider, certManager string) *v1alpha1.Fleet {
	fleet := *s.Fleet
	fleet.Spec.ManagementClusters = slices.Clone(fleet.Spec.ManagementClusters)
	for i := range fleet.Spec.ManagementClusters {
		m := &fleet.Spec.ManagementClusters[i]
		if m.Name != s.DeclaredAs() {
			continue
		}
		m.CertManager.Version = certManager
		m.Providers = slices.Clone(m.Providers)
		for j := range m.Providers {
			for _, p := range chosen {
				if have := &m.Providers[j]; have.Name == p.Name && have.Type == v1alpha1.ProviderType(p.Type) {
					have.Version = p.Version
				}
			}
		}
	}
	return &fleet
}

// preferLocked is the declared cert-manager, in the version that fleet.lock knows where fleet.yaml leaves it open, and there is no bundle
// without it.
func preferLocked(s *session.Session) (v1alpha1.CertManager, error) {
	certs := s.Mgmt.CertManager
	if certs.Version != "" {
		return certs, nil
	}
	lock, err := v1alpha1.LoadLock(filepath.Join(s.Opts.Dir, v1alpha1.LockFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return certs, nil
	}
	if err != nil {
		return certs, err
	}
	locked := components.LockedVersion(lock, certs)
	if s.Bundle != nil {
		if _, err := os.Stat(filepath.Join(providerFolder(s), "cert-manager", locked)); err != nil {
			return certs, nil //nolint:nilerr // the bundle's own it is then
		}
	}
	certs.Version = locked
	return certs, nil
}
