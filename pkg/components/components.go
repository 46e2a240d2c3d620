// Package components reads the released manifests that a fleet installs on its management clusters: the manifests of the providers, of
// cert-manager and of Flux. They come from an offline bundle, or over the network.
package components

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// Defaults are the versions that this fleetctl installs if fleet.yaml names no version.
func Defaults() v1alpha1.Defaults {
	return v1alpha1.Defaults{FluxVersion: version.Library("flux2"), CAPIVersion: version.Library("cluster-api")}
}

// Reader reads components. It is safe for use by several goroutines.
type Reader struct {
	// folder holds a bundle's manifests; "" without a bundle.
	folder string
	remove func() error
	// bundle is the source of the components; nil without a bundle.
	bundle *bundle.Bundle
	// charts keeps the archives of charts that are read.
	charts Charts
	// servers that could be reached, or not.
	servers *contact.Servers
}

// Open returns a Reader of the offline bundle at path, "" standing for the network; cacheDir is where bundles are unpacked to. Close it.
func Open(ctx context.Context, path, cacheDir string) (_ *Reader, err error) {
	if path == "" {
		return &Reader{charts: ChartsIn(cacheDir), servers: releases.NewServers()}, nil
	}
	b, err := bundle.Open(ctx, path, bundle.WithCache(filepath.Join(cacheDir, "bundles")))
	if err != nil {
		return nil, err
	}
	folder, remove, err := atomicfile.TempFolder("", "manifests")
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	r := &Reader{folder: folder, remove: remove, bundle: b, charts: ChartsIn(cacheDir), servers: releases.NewServers()}
	for _, part := range []struct{ dir, prefix string }{
		{folder, "providers"}, {folder, "flux"}, {r.providers(), "cert-manager"},
	} {
		if err := b.WriteFiles(ctx, part.dir, part.prefix); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Close removes what Open has unpacked.
func (r *Reader) Close() error {
	if r.folder == "" {
		return nil
	}
	return errors.Join(r.bundle.Close(), r.remove())
}

func (r *Reader) providers() string {
	if r.folder == "" {
		return ""
	}
	return filepath.Join(r.folder, "providers")
}

// DeclaredProviders are the providers of a fleet.yaml as pkg/capi takes them.
func DeclaredProviders(declared []v1alpha1.Provider) []releases.Provider {
	out := make([]releases.Provider, 0, len(declared))
	for _, p := range declared {
		out = append(out, releases.Provider{Name: p.Name, Type: releases.ProviderType(p.Type), Version: p.Version, URL: p.URL})
	}
	return out
}

// Source finds what a management cluster installs, and other versions of it.
func (r *Reader) Source(m *v1alpha1.ManagementCluster) (*releases.Source, error) {
	var providers []releases.Provider
	for _, p := range m.Providers {
		providers = append(providers, releases.Provider{Name: p.Name, Type: releases.ProviderType(p.Type), URL: p.URL})
	}
	return releases.NewSource(releases.SourceOptions{
		Providers: providers, Repository: r.providers(), Servers: r.servers,
		CertManagerVersion: m.CertManager.Version, CertManagerURL: m.CertManager.URL,
	})
}

// NewestCertManager is the newest version of cert-manager that is known to work: the bundle's version, or the version that this fleetctl
// would install. For a mirror it is the declared version, because a mirror has no list of versions.
func (r *Reader) NewestCertManager(declared v1alpha1.CertManager) (string, error) {
	if declared.URL != "" && r.folder == "" {
		return declared.Version, nil
	}
	source, err := releases.NewSource(releases.SourceOptions{Repository: r.providers(), Servers: r.servers})
	if err != nil {
		return "", err
	}
	return source.NewestCertManager()
}

// FluxVersion is the newest version of Flux that is known to work: the bundle's version, or the version that this fleetctl was built with.
func (r *Reader) FluxVersion() string {
	newest := ""
	if r.folder != "" {
		entries, _ := os.ReadDir(filepath.Join(r.folder, "flux")) // one that is not there has none
		for _, e := range entries {
			if problem, _ := v1alpha1.VersionProblem(e.Name()); problem != "" {
				continue // no version of Flux's is called so, and it would get into fleet.yaml
			}
			if newest == "" || releases.IsOlder(newest, e.Name()) {
				newest = e.Name()
			}
		}
		return newest
	}
	return Defaults().FluxVersion
}

// KubernetesVersion is the newest version of Kubernetes for a host, whose image, or whose control plane's image, is one of names. In a
// bundle it is the newest of the bundle's; "" if the bundle has none. Without a bundle it is usual.
func (r *Reader) KubernetesVersion(usual string, names ...string) string {
	if r.bundle == nil {
		return usual
	}
	newest := ""
	for _, e := range r.bundle.Index() {
		image, _, _ := strings.Cut(e.Name, "@")
		at := strings.LastIndex(image, ":") + 1
		if at == 0 || !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, image[:at]) }) {
			continue
		}
		tag := image[at:]
		if problem, _ := v1alpha1.VersionProblem(tag); problem == "" && (newest == "" || releases.IsOlder(newest, tag)) {
			newest = tag
		}
	}
	return newest
}

// Component is a manifest with what the lock says of it.
type Component struct {
	v1alpha1.LockedComponent
	// YAML as it was released; nil for Flux, which is released in many files.
	YAML []byte
	// images lists the images that the component's manifests run; nil if the manifests were not read.
	images func(context.Context) ([]Image, error)
}

// Digest is the SHA-256 of a manifest, as the lock has it.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Providers are the providers of a fleet's management clusters, once each, without digests: defaults are filled in, so fleet is changed. A
// provider without a version has none here either.
func Providers(fleet *v1alpha1.Fleet) []v1alpha1.LockedComponent {
	v1alpha1.SetDefaults(fleet, Defaults())
	var out []v1alpha1.LockedComponent
	for i := range fleet.Spec.ManagementClusters {
		for _, p := range fleet.Spec.ManagementClusters[i].Providers {
			c := v1alpha1.LockedComponent{Name: p.Name, Type: v1alpha1.ComponentType(p.Type), Version: p.Version, URL: p.URL}
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.LockedComponent) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.URL, b.URL))
	})
	return out
}

// Provider reads the components of a provider. Without a version that is an error. Nothing of them is looked into: they may be a
// stranger's.
func (r *Reader) Provider(ctx context.Context, wanted v1alpha1.LockedComponent) (*Component, error) {
	if wanted.Version == "" {
		return nil, noVersion(wanted)
	}
	p := releases.Provider{Name: wanted.Name, Type: releases.ProviderType(wanted.Type), Version: wanted.Version, URL: wanted.URL}
	//nolint:contextcheck // it reads nothing yet
	source, err := releases.NewSource(releases.SourceOptions{
		Providers: []releases.Provider{p}, Repository: r.providers(),
		Servers: r.servers,
	})
	if err != nil {
		return nil, err
	}
	m, err := source.Unread(ctx, p)
	if err != nil {
		return nil, err
	}
	wanted.SHA256 = Digest(m.YAML)
	return &Component{wanted, m.YAML, func(ctx context.Context) ([]Image, error) {
		names, err := source.ImagesOf(ctx, p)
		return asReleased(names), err
	}}, nil
}

// CertManager reads cert-manager's manifest, in the version of fleet.yaml, or else in the version that would be installed.
func (r *Reader) CertManager(ctx context.Context, wanted v1alpha1.CertManager) (*Component, error) {
	source, err := releases.NewSource(releases.SourceOptions{ //nolint:contextcheck // it reads nothing yet
		Repository: r.providers(), CertManagerVersion: wanted.Version, CertManagerURL: wanted.URL, Servers: r.servers,
	})
	if err != nil {
		return nil, err
	}
	m, err := source.CertManager(ctx)
	if err != nil {
		return nil, err
	}
	return &Component{LockedCertManager(m.Version, wanted.URL, m.YAML), m.YAML, func(ctx context.Context) ([]Image, error) {
		names, err := source.CertManagerImages(ctx)
		return asReleased(names), err
	}}, nil
}

// LockedCertManager is what the lock says of cert-manager.
func LockedCertManager(version, url string, content []byte) v1alpha1.LockedComponent {
	return v1alpha1.LockedComponent{
		Name: "cert-manager", Type: v1alpha1.ComponentCertManager, Version: version, URL: url,
		SHA256: Digest(content),
	}
}

// Flux reads the manifests of Flux that a fleet with defaults installs. Nothing of them is looked into.
func (r *Reader) Flux(ctx context.Context, wanted v1alpha1.Flux) (*Component, error) {
	options := flux.ComponentsOptions{
		Version: wanted.Version, Components: wanted.Components, NetworkPolicy: *wanted.NetworkPolicy, Registry: wanted.Registry,
		ReleasesURL: strings.TrimSuffix(wanted.URL, "/"),
	}
	if r.folder != "" {
		options.ManifestsBase = filepath.Join(r.folder, "flux", wanted.Version)
	}
	release, err := flux.ReadRelease(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Component{LockedFlux(wanted, release.Digest), nil, func(context.Context) ([]Image, error) { return release.Images() }}, nil
}

// LockedFlux is what the lock says of Flux: the digest of the release's manifests, whatever of them fleet.yaml chooses.
func LockedFlux(wanted v1alpha1.Flux, digest string) v1alpha1.LockedComponent {
	return v1alpha1.LockedComponent{Name: "flux", Type: v1alpha1.ComponentFlux, Version: wanted.Version, URL: wanted.URL, SHA256: digest}
}

func noVersion(c v1alpha1.LockedComponent) error {
	return diag.Errorf("`fleetctl init` chooses one, or name it in fleet.yaml", "%s provider %s has no version", c.Type, c.Name)
}

// downloads is the number of components that are read at a time. Reading mostly waits for servers. With only as many readers as processors,
// the last components would notice a missing network only after the first.
const downloads = 16

// read reads everything that a fleet installs, side by side, except providers without a version and the components that taken returns. It
// reports all failures at once, but reports an unreachable server only once.
func (r *Reader) read(ctx context.Context, fleet *v1alpha1.Fleet, taken func(v1alpha1.LockedComponent) *Component) ([]Component, error) {
	providers := slices.DeleteFunc(Providers(fleet), func(c v1alpha1.LockedComponent) bool { return c.Version == "" })
	var certs []v1alpha1.CertManager
	for i := range fleet.Spec.ManagementClusters {
		if c := fleet.Spec.ManagementClusters[i].CertManager; !slices.Contains(certs, c) {
			certs = append(certs, c)
		}
	}
	read := make([]*Component, len(providers)+len(certs)+1)
	errs := make([]error, len(read))
	var group errgroup.Group
	group.SetLimit(downloads)
	for i, p := range providers {
		group.Go(func() error {
			if read[i] = taken(p); read[i] == nil {
				read[i], errs[i] = r.Provider(ctx, p)
			}
			return nil
		})
	}
	for i, c := range certs {
		at := len(providers) + i
		group.Go(func() error {
			if read[at] = taken(LockedCertManager(c.Version, c.URL, nil)); read[at] == nil {
				read[at], errs[at] = r.CertManager(ctx, c)
			}
			return nil
		})
	}
	group.Go(func() error {
		last := len(read) - 1
		if read[last] = taken(LockedFlux(fleet.Spec.Flux, "")); read[last] == nil {
			read[last], errs[last] = r.Flux(ctx, fleet.Spec.Flux)
		}
		return nil
	})
	_ = group.Wait() // the errors are in errs, so that all are told at once
	if err := oncePerServer(errs); err != nil {
		return nil, err
	}
	out := make([]Component, 0, len(read))
	for _, c := range read {
		out = append(out, *c)
	}
	return out, nil
}
