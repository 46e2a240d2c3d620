// Package releases finds the releases of Cluster API's providers and of cert-manager, and reads them: which versions there are, which of
// them fit, their components with variables filled in, their images. Releases are in a folder (an offline bundle's), or where clusterctl
// downloads them. This package knows nothing of what is installed in a cluster.
package releases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/capi/internal/messages"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// SourceOptions of NewSource.
type SourceOptions struct {
	// Providers whose URL is set are found there instead of where clusterctl would look.
	Providers []Provider
	// Variables that provider components are filled in with. clusterctl's own configuration file and the environment are never read.
	Variables map[string]string
	// Kept are the names of variables whose values are not known: the cluster keeps its values. If an installation needs one of them, its
	// error is capi.NeedsValuesError.
	Kept []string
	// Repository, if not empty, is a folder laid out as <provider label>/<version>/{<components>.yaml,metadata.yaml} and
	// cert-manager/<version>/cert-manager.yaml. Then nothing is downloaded.
	Repository string
	// CertManagerVersion to install. Default: the version in Repository, else that of CertManagerURL, else the version that clusterctl would
	// install.
	CertManagerVersion string
	// CertManagerURL is where its manifest is, as clusterctl takes it: …/<version>/cert-manager.yaml. Default: its own releases.
	CertManagerURL string
	// Servers that other sources know already. Default: NewServers.
	Servers *contact.Servers
	// Tuning of the managers; one that no provider has is ignored, see CheckTuning.
	Tuning []kube.Tuning
}

// Source finds the components of providers and cert-manager's manifest, in a folder or where clusterctl downloads them. It is
// safe for use by several goroutines.
type Source struct {
	options    SourceOptions
	config     config.Client
	variables  map[string]string
	repository string
	certs      string // wanted version of cert-manager
	certsURL   string

	mu       sync.Mutex
	releases map[Provider]*release              // by provider with its version
	certsRaw *Manifest                          // cert-manager's, once it was read
	loaded   map[Provider]repository.Components // likewise
	named    map[Provider]map[string]*string    // variables with their defaults, likewise: finding them takes a while
	pins     map[string]string                  // digests of images by name, see Pin
}

// boundDownloads bounds what clusterctl downloads, and keeps it from going from https to http: it takes Go's own client, and can be given
// no other. fleet.yaml says where from, and it may be a stranger's.
var boundDownloads = sync.OnceFunc(func() {
	http.DefaultClient.Transport = contact.Bound(sameorigin.Download(http.DefaultTransport), maxRelease)
})

// NewServers knows no server yet.
func NewServers() *contact.Servers {
	return contact.NewServers(sameorigin.Download(http.DefaultTransport))
}

// NewSource checks opts and returns a Source. It reads nothing yet.
func NewSource(opts SourceOptions) (*Source, error) {
	messages.Listen(nil)
	boundDownloads()
	// Where ClusterClasses are not served, most examples of providers do not work; aws-eks and gcp-gke need the others.
	if opts.Servers == nil {
		opts.Servers = NewServers()
	}
	variables := map[string]string{"CLUSTER_TOPOLOGY": "true", "EXP_MACHINE_POOL": "true", "EXP_CAPG_GKE": "true"}
	maps.Copy(variables, opts.Variables)
	root := ""
	if opts.Repository != "" {
		var err error
		if root, err = filepath.Abs(opts.Repository); err != nil {
			return nil, fmt.Errorf("find provider repository %s: %w", opts.Repository, err)
		}
	}
	configuration, err := newConfig(config.NewMemoryReader(), variables, opts.Providers)
	if err != nil {
		return nil, err
	}
	return &Source{
		config: configuration, variables: variables, repository: root, certs: opts.CertManagerVersion, certsURL: opts.CertManagerURL,
		releases: map[Provider]*release{}, loaded: map[Provider]repository.Components{}, named: map[Provider]map[string]*string{}, options: opts,
	}, nil
}

// newConfig is a clusterctl configuration that holds nothing of the user's own.
func newConfig(reader *config.MemoryReader, variables map[string]string, providers []Provider) (config.Client, error) {
	if err := reader.Init(context.Background(), ""); err != nil {
		return nil, fmt.Errorf("configure clusterctl: %w", err)
	}
	for name, value := range variables {
		reader.Set(name, value)
	}
	// Else files under the user's ~/.config/cluster-api/overrides would take the place of components.
	reader.Set("overridesFolder", filepath.Join(string(filepath.Separator), "nonexistent", "fleetctl"))
	for _, p := range providers {
		if p.URL == "" {
			continue
		}
		if _, err := reader.AddProvider(p.Name, p.ClusterctlType(), p.URL); err != nil {
			return nil, fmt.Errorf("configure %s: %w", p, err)
		}
	}
	client, err := config.New(context.Background(), "", config.InjectReader(reader))
	if err != nil {
		return nil, fmt.Errorf("configure clusterctl: %w", err)
	}
	return client, nil
}

// Config is the configuration of clusterctl's library that has the providers and variables of s, and nothing of the user's own.
func (s *Source) Config() config.Client { return s.config }

// ConfigWith is Config with more providers, each with its URL.
func (s *Source) ConfigWith(more []Provider) (config.Client, error) {
	return newConfig(config.NewMemoryReader(), s.variables, slices.Concat(s.options.Providers, more))
}

// Kept are the names of the variables whose values the cluster keeps.
func (s *Source) Kept() []string { return slices.Clone(s.options.Kept) }

// LatestVersion is the newest version of p in the repository folder, else the newest of its releases that supports this Cluster API's
// contract.
func (s *Source) LatestVersion(ctx context.Context, p Provider) (string, error) {
	if s.repository != "" {
		versions, err := s.versions(p.Label())
		if err != nil {
			return "", diag.Wrap("find a version of "+p.String(), err, "")
		}
		return versions[0], nil
	}
	p.Version = ""
	client, err := s.Repository(ctx, p)
	if err != nil {
		return "", err
	}
	return client.DefaultVersion(), nil
}

// Resolve returns providers with defaults added (see WithDefaults) and all versions filled in.
func (s *Source) Resolve(ctx context.Context, providers []Provider) ([]Provider, error) {
	all := WithDefaults(providers)
	errs := make([]error, len(all))
	var group errgroup.Group
	for i := range all {
		if all[i].Version != "" {
			continue
		}
		group.Go(func() error {
			all[i].Version, errs[i] = s.LatestVersion(ctx, all[i])
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, so that all are told at once
	return all, errors.Join(errs...)
}

// Manifest is a file with components and what belongs to it.
type Manifest struct {
	// Version of the provider that it installs.
	Version string
	// File is its name in a provider repository.
	File string
	// YAML as it was released; variables are not filled in.
	YAML []byte
	// Metadata is the provider's metadata.yaml; nil for cert-manager.
	Metadata []byte
}

// Components are the components of p with their metadata, as released.
func (s *Source) Components(ctx context.Context, p Provider) (*Manifest, error) {
	r, err := s.released(ctx, p)
	if err != nil {
		return nil, err
	}
	client, err := s.Repository(ctx, p)
	if err != nil {
		return nil, err
	}
	m := r.manifest
	metadata, err := client.Metadata(m.Version).Get(ctx)
	if err != nil {
		return nil, diag.Wrap("read the metadata of "+p.String(), &quotingError{err}, "")
	}
	if m.Metadata, err = yaml.Marshal(metadata); err != nil {
		return nil, fmt.Errorf("write the metadata of %s: %w", p, err)
	}
	return &m, nil
}

// Unread are the components of p without metadata. Where p has a version, nothing of the release is looked into, so that it may be a
// stranger's.
func (s *Source) Unread(ctx context.Context, p Provider) (*Manifest, error) {
	r, err := s.released(ctx, p)
	if err != nil {
		return nil, err
	}
	m := r.manifest
	return &m, nil
}

// Images are all that the components of providers and cert-manager name, sorted.
func (s *Source) Images(ctx context.Context, providers []Provider) ([]string, error) {
	images := make([][]string, len(providers)+1)
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range providers {
		group.Go(func() error {
			components, err := s.load(ctx, p, true)
			if err != nil {
				return err
			}
			images[i] = components.Images()
			return nil
		})
	}
	group.Go(func() error {
		objects, _, err := s.CertManagerObjects(ctx)
		images[len(providers)] = imagesOf(objects...)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(images...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Prefetch reads, parses and remembers what Install of pkg/capi needs of providers and cert-manager: downloads and seconds of work that can
// be done while the management cluster starts. Calling it is optional.
func (s *Source) Prefetch(ctx context.Context, providers []Provider) error {
	errs := make([]error, len(providers)+1)
	var group errgroup.Group
	for i, p := range providers {
		group.Go(func() error {
			_, errs[i] = s.load(ctx, p, false)
			return nil
		})
	}
	group.Go(func() error {
		_, _, errs[len(providers)] = s.CertManagerObjects(ctx)
		return nil
	})
	_ = group.Wait() // the errors are in errs, so that all are told at once
	return errors.Join(errs...)
}

// Filled returns the components of p as Install of pkg/capi applies them: variables filled in, tuned and pinned. Callers do not change
// them.
func (s *Source) Filled(ctx context.Context, p Provider) (repository.Components, error) {
	return s.load(ctx, p, false)
}

// load returns the components of p with variables filled in (or maybe as they are, if raw: enough for their images) and clusterctl's labels
// put on. Callers do not change them.
func (s *Source) load(ctx context.Context, p Provider, raw bool) (repository.Components, error) {
	s.mu.Lock()
	known := s.loaded[p]
	s.mu.Unlock()
	if known != nil {
		return known, nil // filled in or not, the images and objects in it are the same
	}
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	components, err := s.fill(r, raw)
	if err != nil {
		if missing := s.checkVariables(ctx, p); missing != nil && !raw {
			return nil, missing // says it better
		}
		return nil, diag.Wrap("read the components of "+p.String(), err, "")
	}
	if err := tune(components, s.options.Tuning); err != nil {
		return nil, diag.Wrap("tune "+p.String(), err, "take it out of tuning in fleet.yaml")
	}
	if err := pinComponents(components, s.pinned()); err != nil {
		return nil, fmt.Errorf("pin the images of %s: %w", p, err)
	}
	if !raw && p.Version != "" {
		s.mu.Lock()
		s.loaded[p] = components
		s.mu.Unlock()
	}
	return components, nil
}

// Repository is clusterctl's for the repository of p, pinned to p's version if it has one: the newest is not asked for then.
func (s *Source) Repository(ctx context.Context, p Provider) (repository.Client, error) {
	provider, err := s.config.Providers().Get(p.Name, p.ClusterctlType())
	if err != nil {
		//nolint:contextcheck // it asks nobody; without clusterctl's advice, which is about its own configuration
		if unknown := CheckKnown(p); unknown != nil {
			return nil, unknown
		}
		return nil, diag.Wrap("find "+p.String(), err, "")
	}
	location, err := s.locate(p, provider.URL())
	if err != nil {
		return nil, diag.Wrap("find "+p.String(), err, "")
	}
	client, err := s.open(ctx, config.NewProvider(p.Name, location, p.ClusterctlType()))
	if err != nil {
		return nil, diag.Wrap("find "+p.String(), err, "")
	}
	return client, nil
}

// open is clusterctl's client for a repository whose server can be reached: clusterctl itself goes on asking for two minutes.
func (s *Source) open(ctx context.Context, p config.Provider) (repository.Client, error) {
	if at, err := url.Parse(p.URL()); err == nil && at.Scheme == "https" {
		if err := s.options.Servers.Check(ctx, downloadURL(at)); err != nil {
			return nil, diag.Wrap("", err, offlineHint)
		}
	}
	if err := checkFiles(p.URL()); err != nil {
		return nil, err
	}
	return repository.New(ctx, p, s.config)
}

const offlineHint = "check the network or the proxy, or use an offline bundle: --bundle PATH, see docs/tasks/offline.md"

// downloadURL is where a file of a repository is in the end: GitHub's are on another server, which redirects lead to.
func downloadURL(at *url.URL) string {
	const releases = "/releases/"
	before, after, ok := strings.Cut(at.Path, releases)
	if at.Host != "github.com" || !ok {
		return at.String()
	}
	if rest, ok := strings.CutPrefix(after, "latest/"); ok {
		after = "latest/download/" + rest
	} else {
		after = "download/" + after
	}
	return "https://" + at.Host + before + releases + after
}
