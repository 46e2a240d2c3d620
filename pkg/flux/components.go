package flux

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen/install"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ComponentsOptions choose what runs in the flux-system namespace.
type ComponentsOptions struct {
	// Version of the Flux distribution (v2.9.5); required.
	Version string
	// Components to install. Default: DefaultComponents.
	Components []string
	// NetworkPolicy installs policies that refuse connections from other namespaces.
	NetworkPolicy bool
	// Registry of the images. Default: DefaultRegistry.
	Registry string
	// ImagePullSecret names a secret in flux-system with the credentials for Registry. Default: none.
	ImagePullSecret string
	// ClusterDomain of the cluster's DNS. Default: cluster.local.
	ClusterDomain string
	// ManifestsBase is a folder with <component>.yaml, rbac.yaml and policies.yaml, as in the manifests.tar.gz of a Flux release or in an
	// offline bundle. It is only read. Empty means to download the release.
	ManifestsBase string
	// ReleasesURL is the base URL of releases. Default: Flux's releases at GitHub.
	ReleasesURL string
	// Tuning of the controllers. An unknown controller is ignored.
	Tuning []kube.Tuning
}

// Components are Flux's CRDs and controllers.
type Components struct {
	// Content is the YAML of gotk-components.yaml. It is the same on every cluster.
	Content []byte
	// Tuning is for the management cluster alone.
	Tuning []kube.Tuning
	// Images of the Deployments, sorted, with tags.
	Images []Image
	// Digest is the SHA-256, in hexadecimal, of all manifests of the release, including unused ones.
	Digest string
}

// GenerateComponents builds Flux's manifests as `flux install --export` does. With opts.ManifestsBase it uses no network. It fails if a
// component is unknown or missing from the base, or if the release cannot be downloaded.
func GenerateComponents(ctx context.Context, opts ComponentsOptions) (*Components, error) {
	opts = opts.withDefaults()
	r, err := readRelease(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.remove() }() // best effort: a temporary folder
	content, err := generate(r.base, opts)
	if err != nil {
		return nil, fmt.Errorf("generate flux components %s: %w", opts.Version, err)
	}
	objects, err := kube.ParseYAML(content)
	if err != nil {
		return nil, fmt.Errorf("read generated flux components: %w", err)
	}
	var images []Image
	for _, image := range kube.Images(objects) {
		images = append(images, opts.imageOf(image))
	}
	return &Components{Content: content, Tuning: opts.Tuning, Images: images, Digest: r.digest}, nil
}

func (o ComponentsOptions) withDefaults() ComponentsOptions {
	if len(o.Components) == 0 {
		o.Components = DefaultComponents()
	}
	if o.Registry == "" {
		o.Registry = DefaultRegistry
	}
	if o.ClusterDomain == "" {
		o.ClusterDomain = "cluster.local"
	}
	if o.ReleasesURL == "" {
		o.ReleasesURL = install.MakeDefaultOptions().BaseURL
	}
	return o
}

func (o ComponentsOptions) validate() error {
	if !strings.HasPrefix(o.Version, "v") {
		return diag.Errorf("versions look like v2.9.5", "flux version %q is not a release", o.Version)
	}
	for _, c := range o.Components {
		if !slices.Contains(AllComponents(), c) {
			return diag.Errorf("the components are "+strings.Join(AllComponents(), ", "), "unknown flux component %q", c)
		}
	}
	for _, c := range []string{"source-controller", "kustomize-controller"} {
		if !slices.Contains(o.Components, c) {
			return diag.Errorf("add it to spec.flux.components", "flux component %s is needed to sync the fleet repo", c)
		}
	}
	return nil
}

// generate runs flux2's generator over the folder base, to which the generator writes.
func generate(base string, opts ComponentsOptions) ([]byte, error) {
	if err := screen(base); err != nil {
		return nil, err
	}
	o := install.MakeDefaultOptions()
	o.Version = opts.Version
	o.Namespace = Namespace
	o.Components = opts.Components
	o.NetworkPolicy = opts.NetworkPolicy
	o.Registry = strings.TrimSuffix(opts.Registry, "/")
	o.ImagePullSecret = opts.ImagePullSecret
	o.ClusterDomain = opts.ClusterDomain
	o.ManifestFile = ComponentsFile
	m, err := install.Generate(o, base)
	if err != nil {
		return nil, err
	}
	return []byte(m.Content), nil
}

// eachDocument calls fn for each YAML document in content, until one fails.
func eachDocument(content []byte, fn func(doc []byte) error) error {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(doc); err != nil {
			return err
		}
	}
}
