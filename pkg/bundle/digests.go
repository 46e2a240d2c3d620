package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
)

// Digests are those that the content under one reference goes by.
type Digests struct {
	// Digest is what the reference stands for in its registry ("sha256:…"): an index, or the manifest of the only image. In a bundle that does not tell it is
	// the manifest of the image for the bundle's platform.
	Digest string
	// Images are the digests of manifests that are a part of it: in a bundle that of the image which it has, in a registry the one that was asked for, where
	// nothing else can run on the platform that it is for.
	Images []string
}

// Has tells whether digest is that of the whole, or of one image of it.
func (d *Digests) Has(digest string) bool {
	return d.Digest == digest || slices.Contains(d.Images, digest)
}

// Resolve asks a registry, with the credentials that docker or podman keep, what a reference stands for now. Mirrors are asked in the place of
// registries, as in Sources. part is the digest that somebody has of one image of it, or "": whether it is one is asked. Errors say what to do; one of
// *contact.Error is in the tree where the registry could not be reached.
func Resolve(ctx context.Context, ref string, mirrors map[string]string, part string) (*Digests, error) {
	op := "find the digest of image " + ref
	full, err := FullReference(ref)
	if err != nil {
		return nil, err
	}
	parsed, err := name.ParseReference(full)
	if err == nil {
		parsed, err = mirrored(parsed, mirrors)
	}
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	// The manifest and not its header: what the registry says of its digest proves nothing.
	options := append(asking(ctx, parsed.Context()), remote.WithTransport(contact.Bound(roundTripper(parsed.Context()), maxManifest)))
	failed := func(err error) error {
		hint := pullHint(parsed, err)
		if _, silent := errors.AsType[*contact.Error](err); silent {
			hint = "check the network and the proxy, or use an offline bundle: --bundle"
		}
		return diag.Wrap(op, err, hint)
	}
	found, err := remote.Get(parsed, options...)
	if err != nil {
		return nil, failed(err)
	}
	d := &Digests{Digest: found.Digest.String()}
	if part == "" || part == d.Digest || !found.MediaType.IsIndex() {
		return d, nil
	}
	index, err := readImageIndex(found.Manifest)
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	switch is, err := isPart(index, parsed.Context(), part, options...); {
	case err != nil:
		return nil, failed(err)
	case is:
		d.Images = []string{part}
	}
	return d, nil
}

// Unasked tells whether err is of a registry that could not be asked, so that it has said nothing of the image: it was not reached, did not answer in time, or
// answers nobody without credentials, or nobody now.
func Unasked(err error) bool {
	if _, silent := errors.AsType[*contact.Error](err); silent || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return isStatus(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
}

// readImageIndex reads the index of an image for several platforms.
func readImageIndex(raw []byte) ([]v1.Descriptor, error) {
	var index struct {
		Manifests listed `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	return index.Manifests, nil
}

// Digests are those of an image in the bundle, by any form of its reference. What the bundle says of the registry's index holds where the image is in that
// index. The error has ErrNotFound in its tree if the image is not there.
func (b *Bundle) Digests(ref string) (*Digests, error) {
	full, err := FullReference(ref)
	if err != nil {
		return nil, err
	}
	img, ok := b.find(full)
	if !ok {
		return nil, notFound(KindImage, full)
	}
	d := &Digests{Digest: img.descriptor.Digest.String(), Images: []string{img.descriptor.Digest.String()}}
	if index := img.index(); index != "" {
		d.Digest = index
	}
	return d, nil
}

// index is the digest of the index that the image proves to be in; "" where it does not.
func (i image) index() string {
	text := i.descriptor.Annotations[host.AnnotationIndex]
	if text == "" {
		return ""
	}
	index, err := readImageIndex([]byte(text))
	if err != nil || !slices.ContainsFunc(index, func(d v1.Descriptor) bool { return d.Digest == i.descriptor.Digest }) {
		return ""
	}
	return describe([]byte(text)).Digest.String()
}

// checkName refuses a name with a digest that is neither the image's nor that of an index which it proves to be in: a container engine takes the name as it
// comes, and pods that pin that digest would run this image.
func (i image) checkName(full string) error {
	_, wanted, digested := strings.Cut(full, "@")
	if !digested || wanted == i.descriptor.Digest.String() || wanted == i.index() {
		return nil
	}
	return errors.New("its name has another digest, and nothing proves that it belongs to that")
}

// find is the image of a full reference. One that goes by a digest may be in the bundle under a tag: it is found by its own digest, or by the index that it
// proves to be in, and then goes by that name.
func (b *Bundle) find(full string) (image, bool) {
	if img, ok := b.images[full]; ok {
		return img, true
	}
	parsed, err := reference.ParseNamed(full)
	if err != nil {
		return image{}, false
	}
	digested, ok := parsed.(reference.Digested)
	if !ok {
		return image{}, false
	}
	wanted := digested.Digest().String()
	for _, ref := range sortedImages(b.images) {
		img := b.images[ref]
		if !strings.HasPrefix(ref, parsed.Name()+":") || img.descriptor.Digest.String() != wanted && img.index() != wanted {
			continue
		}
		img.descriptor.Annotations = maps.Clone(img.descriptor.Annotations)
		img.descriptor.Annotations[annotationRefName], img.descriptor.Annotations[annotationImageName] = full, full
		return img, true
	}
	return image{}, false
}

func sortedImages(images map[string]image) []string { return slices.Sorted(maps.Keys(images)) }
