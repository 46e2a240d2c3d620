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

// ImagesOf are the images that the components of p name as they were released, sorted: without those whose name has a variable in it.
// Nothing else of the release is looked into.
func (s *Source) ImagesOf(ctx context.Context, p Provider) ([]string, error) {
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.manifest.images(p.String())
}

// CertManagerImages are the images that cert-manager's manifest names, sorted.
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

// images reads only those documents that may name one: a release consists of CRDs for the most part, which take seconds.
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

// Pin makes all that is installed name images by tag and digest: digests has these by the images' names. What was read before is
// changed, too. It is called before anything is installed.
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

// pinned are the digests that were given to Pin.
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

// SameImages tells whether two Deployments run the same. One that runs by a tag is left as it is where the tag is the wanted one: it is
// pinned when something else of it changes.
func SameImages(there, wanted *unstructured.Unstructured) bool {
	return slices.EqualFunc(imagesOf(there), imagesOf(wanted), func(a, b string) bool {
		name, digest, _ := strings.Cut(a, "@")
		other, wanted, _ := strings.Cut(b, "@")
		return name == other && (digest == wanted || digest == "" || wanted == "")
	})
}

// OtherDigests tells whether a Deployment runs images of the wanted tags by other digests than are wanted now. What it runs by a name of
// somebody's own is left alone.
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
