// Package releases finds and reads the releases of Cluster API's providers and of cert-manager: their versions, which of these fit, their
// components with variables filled in, and their images. Releases are in a folder, such as that of an offline bundle, or where clusterctl
// downloads them. The package does not know what is installed in a cluster.
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

// SourceOptions are the options of NewSource.
type SourceOptions struct {
	// Providers are providers with their own URLs. Those without a URL are found where clusterctl finds them.
	Providers []Provider
	// Variables are the values of the components' variables. clusterctl's own configuration file and the environment are never read.
	Variables map[string]string
	// Kept are the names of variables whose values are unknown here and stay as they are in the cluster. If an installation needs one of them,
	// its error is capi.NeedsValuesError.
	Kept []string
	// Repository, if not empty, is a folder with <provider label>/<version>/{<components>.yaml,metadata.yaml} and
	// cert-manager/<version>/cert-manager.yaml. Then nothing is downloaded.
	Repository string
	// CertManagerVersion is the version to install. Default: the version in Repository, else that of CertManagerURL, else the version that
	// clusterctl would install.
	CertManagerVersion string
	// CertManagerURL is the URL of the manifest in clusterctl's form: …/<version>/cert-manager.yaml. Default: cert-manager's own releases.
	CertManagerURL string
	// Servers are servers that other Sources have already checked. Default: NewServers.
	Servers *contact.Servers
	// Tuning is the tuning of the managers. A tuning for an unknown manager is ignored; CheckTuning reports it.
	Tuning []kube.Tuning
	// CPURequest, if not empty, is the CPU request of the managers, also cert-manager's, for which neither their release nor Tuning sets
	// one, as a Kubernetes quantity ("100m").
	CPURequest string
}

// Source finds the components of providers and cert-manager's manifest, in a folder or where clusterctl downloads them. It is safe for
// concurrent use.
type Source struct {
	options    SourceOptions
	config     config.Client
	variables  map[string]string
	repository string
	certs      string // wanted version of cert-manager
	certsURL   string

	mu       sync.Mutex
	releases map[Provider]*release              // by provider, including its version
	certsRaw *Manifest                          // cert-manager's manifest, after it was read
	loaded   map[Provider]repository.Components // components by provider, after they were read
	named    map[Provider]map[string]*string    // variables with their defaults, because finding them takes a while
	pins     map[string]string                  // digests by image name, see Pin
}

// boundDownloads bounds the downloads of clusterctl, and refuses redirects from https to http. It changes Go's default client, because
// clusterctl accepts no other. The address comes from fleet.yaml, so the server may be untrusted.
var boundDownloads = sync.OnceFunc(func() {
	http.DefaultClient.Transport = contact.Bound(sameorigin.Download(http.DefaultTransport), maxRelease)
})

// NewServers returns Servers that have not checked any server yet.
func NewServers() *contact.Servers {
	return contact.NewServers(sameorigin.Download(http.DefaultTransport))
}

// NewSource checks opts and returns a Source. It reads no release.
func NewSource(opts SourceOptions) (*Source, error) {
	messages.Listen(nil)
	boundDownloads()
	// Most examples of providers need ClusterClasses; aws-eks and gcp-gke need the other two features.
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

// newConfig returns a configuration of clusterctl without the user's own settings.
func newConfig(reader *config.MemoryReader, variables map[string]string, providers []Provider) (config.Client, error) {
	if err := reader.Init(context.Background(), ""); err != nil {
		return nil, fmt.Errorf("configure clusterctl: %w", err)
	}
	for name, value := range variables {
		reader.Set(name, value)
	}
	// Otherwise files under the user's ~/.config/cluster-api/overrides would replace components.
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

// Config returns the configuration of clusterctl's library with the providers and variables of s, and without the user's own settings.
func (s *Source) Config() config.Client { return s.config }

// ConfigWith returns Config with more providers, each with its URL.
func (s *Source) ConfigWith(more []Provider) (config.Client, error) {
	return newConfig(config.NewMemoryReader(), s.variables, slices.Concat(s.options.Providers, more))
}

// Kept returns the names of the variables whose values the cluster keeps.
func (s *Source) Kept() []string { return slices.Clone(s.options.Kept) }

// LatestVersion returns the newest version of p in the repository folder, or else the newest of its releases that supports this Cluster
// API's contract.
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

// Resolve returns providers with the default providers added (see WithDefaults) and with all versions filled in.
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
	_ = group.Wait() // errs has the errors, to report them together
	return all, errors.Join(errs...)
}

// Manifest is a file with components, and its metadata.
type Manifest struct {
	// Version is the version that the file installs.
	Version string
	// File is the file's name in a provider repository.
	File string
	// YAML is the content as released, without variables filled in.
	YAML []byte
	// Metadata is the provider's metadata.yaml. It is nil for cert-manager.
	Metadata []byte
}

// Components returns the components of p with their metadata, as released.
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

// Unread returns the components of p without metadata. If p has a version, it parses nothing of the release, so the release may be
// untrusted.
func (s *Source) Unread(ctx context.Context, p Provider) (*Manifest, error) {
	r, err := s.released(ctx, p)
	if err != nil {
		return nil, err
	}
	m := r.manifest
	return &m, nil
}

// Images returns the sorted images in the components of providers and in cert-manager's manifest.
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

// Prefetch reads, parses and caches the releases that Install of pkg/capi needs. These are downloads and seconds of work that can be done
// while the management cluster starts. Calling it is optional.
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
	_ = group.Wait() // errs has the errors, to report them together
	return errors.Join(errs...)
}

// Filled returns the components of p as Install of pkg/capi applies them: with variables filled in, tuned and pinned. Callers must not
// change them.
func (s *Source) Filled(ctx context.Context, p Provider) (repository.Components, error) {
	return s.load(ctx, p, false)
}

// load returns the components of p with clusterctl's labels and with variables filled in. If raw is true, the variables may be missing,
// which is enough to find the images. Callers must not change the components.
func (s *Source) load(ctx context.Context, p Provider, raw bool) (repository.Components, error) {
	s.mu.Lock()
	known := s.loaded[p]
	s.mu.Unlock()
	if known != nil {
		return known, nil // with or without variables, their images and objects are the same
	}
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	components, err := s.fill(r, raw)
	if err != nil {
		if missing := s.checkVariables(ctx, p); missing != nil && !raw {
			return nil, missing // this error is clearer
		}
		return nil, diag.Wrap("read the components of "+p.String(), err, "")
	}
	if err := s.tune(components); err != nil {
		return nil, diag.Wrap("tune "+p.String(), err, "remove it from `tuning` in fleet.yaml")
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

// Repository returns clusterctl's client for the repository of p. If p has a version, the client is pinned to it and does not look for the
// newest.
func (s *Source) Repository(ctx context.Context, p Provider) (repository.Client, error) {
	provider, err := s.config.Providers().Get(p.Name, p.ClusterctlType())
	if err != nil {
		//nolint:contextcheck // it sends no request; without clusterctl's advice, which is about its own configuration
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

// open returns clusterctl's client for a repository. It first checks that the server can be reached, because clusterctl itself would retry
// for two minutes.
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

// downloadURL returns the URL of a repository's file after clusterctl's translation. GitHub's files are on another server, to which
// redirects lead.
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
