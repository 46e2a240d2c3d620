package releases

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// ImagesOf returns the sorted images in the components of p as released. It leaves out images with a variable in their names, and parses
// nothing else of the release.
func (s *Source) ImagesOf(ctx context.Context, p Provider) ([]string, error) {
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.manifest.images(p.String())
}

// CertManagerImages returns the sorted images in cert-manager's manifest.
func (s *Source) CertManagerImages(ctx context.Context) ([]string, error) {
	m, err := s.CertManager(ctx)
	if err != nil {
		return nil, err
	}
	of := "cert-manager " + m.Version
	if err := m.screen(of); err != nil {
		return nil, err
	}
	return m.images(of)
}

// images parses only the documents that may name an image. Most of a release are CRDs, which would take seconds to parse.
func (m *Manifest) images(of string) ([]string, error) {
	relevant := documents(m.YAML, func(doc []byte) bool {
		return bytes.Contains(doc, []byte("image")) && !bytes.Contains(doc, []byte("\nkind: CustomResourceDefinition"))
	})
	objects, err := kube.ParseYAML(bytes.Join(relevant, []byte("\n")))
	if err != nil {
		return nil, fmt.Errorf("read the images of %s: %w", of, &quotingError{err})
	}
	return slices.DeleteFunc(kube.Images(objects), func(image string) bool { return strings.Contains(image, "$") }), nil
}

// Pin adds digests to the images of all installed objects, so that they are named by tag and digest. digests has the digests by image name.
// It also changes the components that were read before. Call it before anything is installed.
func (s *Source) Pin(digests map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins = maps.Clone(digests)
	for p, components := range s.loaded {
		if err := pinComponents(components, s.pins); err != nil {
			return fmt.Errorf("pin the images of %s: %w", p, err)
		}
	}
	return nil
}

// pinned returns the digests of Pin.
func (s *Source) pinned() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pins
}

func pinComponents(components repository.Components, digests map[string]string) error {
	return repository.AlterComponents(components, func(objects []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
		pin(kube.Pointers(objects), digests)
		return objects, nil
	})
}

func pin(objects []*unstructured.Unstructured, digests map[string]string) {
	for _, obj := range objects {
		kube.EditImages(obj, func(image string) string {
			if digest := digests[image]; digest != "" {
				return image + "@" + digest
			}
			return image
		})
	}
}

// SameImages tells whether two Deployments run the same images. An image without a digest counts as the same if its tag is the wanted one.
// It is pinned when another part of its Deployment changes.
func SameImages(there, wanted *unstructured.Unstructured) bool {
	return slices.EqualFunc(imagesOf(there), imagesOf(wanted), func(a, b string) bool {
		name, digest, _ := strings.Cut(a, "@")
		other, wanted, _ := strings.Cut(b, "@")
		return name == other && (digest == wanted || digest == "" || wanted == "")
	})
}

// OtherDigests tells whether a Deployment runs the wanted tags with other digests. It returns false if the Deployment runs an image of
// another name, which somebody has chosen.
func OtherDigests(there, wanted *unstructured.Unstructured) bool {
	if there == nil {
		return false
	}
	var names []string
	for _, image := range imagesOf(wanted) {
		name, _, _ := strings.Cut(image, "@")
		names = append(names, name)
	}
	return !SameImages(there, wanted) && !slices.ContainsFunc(imagesOf(there), func(image string) bool {
		name, _, _ := strings.Cut(image, "@")
		return !slices.Contains(names, name)
	})
}
