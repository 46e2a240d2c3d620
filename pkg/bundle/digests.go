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

// Digests are the digests that identify the content of one reference.
type Digests struct {
	// Digest is the digest of the index or manifest to which the reference leads in its registry ("sha256:…"). A bundle that does not know it
	// has the digest of its image's manifest instead.
	Digest string
	// Images are digests of manifests in the index. A bundle returns the digest of its own image. A registry returns the digest that the
	// caller asked for, if this image is the only one in the index for its platform.
	Images []string
}

// Has tells whether digest is Digest or one of Images.
func (d *Digests) Has(digest string) bool {
	return d.Digest == digest || slices.Contains(d.Images, digest)
}

// Resolve asks a registry for the current digests of a reference, with the credentials of docker or podman. Mirrors replace registries, as
// in Sources. If part is a digest, Resolve also finds out whether it is an image of the reference's index. Errors have a hint. The error
// matches *contact.Error if the registry could not be reached.
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
	// Get the manifest itself, because a digest in the registry's header proves nothing.
	options := append(asking(ctx, parsed.Context()), remote.WithTransport(contact.Bound(roundTripper(parsed.Context()), maxManifest)))
	failed := func(err error) error {
		hint := pullHint(parsed, err)
		if _, silent := errors.AsType[*contact.Error](err); silent {
			hint = "check the network and the proxy, or use an offline bundle: --bundle"
		}
		return diag.Wrap(op, quotable(err), hint)
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

// Unasked tells whether err means that a registry gave no answer about the image: it could not be reached, was too slow, asked for
// credentials, or refuses requests for now.
func Unasked(err error) bool {
	if _, silent := errors.AsType[*contact.Error](err); silent || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	return isStatus(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
}

// readImageIndex returns the manifests in the index of an image for several platforms.
func readImageIndex(raw []byte) ([]v1.Descriptor, error) {
	var index struct {
		Manifests listed `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read its index: %w", err)
	}
	return index.Manifests, nil
}

// Digests returns the digests of an image in the bundle, by any form of its reference. They include the registry's index only if that index
// contains the image. The error matches ErrNotFound if the bundle lacks the image.
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

// index returns the digest of the index that provably contains the image. It returns "" if there is no proof.
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

// checkName refuses a name with a digest that is neither the image's nor the digest of an index that provably contains the image. Container
// engines do not check the name, so pods that pin this digest would run this image.
func (i image) checkName(full string) error {
	_, wanted, digested := strings.Cut(full, "@")
	if !digested || wanted == i.descriptor.Digest.String() || wanted == i.index() {
		return nil
	}
	return errors.New("its name has another digest, and no index proves that the image belongs to it")
}

// find returns the image of a full reference. A reference with a digest also matches an image with a tag: by the image's own digest, or by
// the index that provably contains it. The result then has the name full.
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
