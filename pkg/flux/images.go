package flux

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Image is the image of a controller of Flux.
type Image struct {
	// Name of the released image, below DefaultRegistry.
	Name string
	// From is the reference that is pulled, below ComponentsOptions.Registry.
	From string
}

// shortRegistry is the placeholder of the registry in Flux's released manifests.
const shortRegistry = "fluxcd/"

// Release is a release of Flux whose manifests were read.
type Release struct {
	// Digest is the Digest that GenerateComponents would give.
	Digest string

	opts      ComponentsOptions
	manifests map[string][]byte // by component
}

// ReadRelease reads the manifests that opts choose of a release. It does not parse them, so they may be untrusted.
func ReadRelease(ctx context.Context, opts ComponentsOptions) (*Release, error) {
	opts = opts.withDefaults()
	r, err := readRelease(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.remove() }() // nothing depends on it
	release := &Release{Digest: r.digest, opts: opts, manifests: map[string][]byte{}}
	for _, c := range opts.Components {
		content, err := within.ReadFile(r.base, c+".yaml", maxManifest)
		if err != nil {
			return nil, fmt.Errorf("read flux manifests: %w", err)
		}
		release.manifests[c] = content
	}
	return release, nil
}

// Images returns the images of the release's controllers, sorted by name. It fails if a manifest is not one of Flux's.
func (r *Release) Images() ([]Image, error) {
	var all []Image
	for component, content := range r.manifests {
		if err := screenManifest(component+".yaml", content); err != nil {
			return nil, err
		}
		objects, err := kube.ParseYAML(content)
		if err != nil {
			return nil, diag.Wrap("read flux manifests", err, "")
		}
		for _, image := range kube.Images(objects) {
			if name, ok := strings.CutPrefix(image, shortRegistry); ok {
				image = r.opts.registry() + "/" + name
			}
			all = append(all, r.opts.imageOf(image))
		}
	}
	return sortedImages(all), nil
}

// imageOf returns the Image with the reference from.
func (o ComponentsOptions) imageOf(from string) Image {
	image := Image{Name: from, From: from}
	if rest, ok := strings.CutPrefix(from, o.registry()+"/"); ok {
		image.Name = DefaultRegistry + "/" + rest
	}
	return image
}

func (o ComponentsOptions) registry() string { return strings.TrimSuffix(o.Registry, "/") }

func sortedImages(all []Image) []Image {
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(all)
}

// Pin adds digests to the image references of the Deployments, on all clusters. digests has them by Image.Name.
func (c *Components) Pin(digests map[string]string) {
	for _, image := range c.Images {
		digest := digests[image.Name]
		if digest == "" {
			continue
		}
		for _, quote := range []string{"", `"`, `'`} {
			line := []byte("image: " + quote + image.From + quote + "\n")
			pinned := []byte("image: " + image.From + "@" + digest + "\n")
			c.Content = bytes.ReplaceAll(c.Content, line, pinned)
		}
	}
}
