package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// LockedImage is a container image that a component runs.
type LockedImage struct {
	// Name is the reference in the component's manifest, with a tag: registry.k8s.io/cluster-api/cluster-api-controller:v1.14.2. It stays
	// the same if fleet.yaml replaces the registry.
	Name string `json:"name"`
	// Digest of the tag in the registry ("sha256:…"). For an image for several platforms it is the digest of the index.
	Digest string `json:"digest"`
	// Bundle means that the digest was read from an offline bundle. If the bundle does not know the registry's digest, it is the digest
	// of the image for the bundle's platform.
	Bundle bool `json:"bundle,omitempty"`
}

// imageDigest matches a digest in the form of registries and container engines.
var imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (v *validator) lockedImages(images []LockedImage) {
	for i, image := range images {
		at := itemPath("images", i)
		if image.Digest != "" && !imageDigest.MatchString(image.Digest) {
			v.errorf(RuleValue, fieldPath(at, "digest"), "`fleetctl lock` writes it",
				"not the digest of an image: sha256: and 64 hexadecimal digits")
		}
		if strings.Contains(image.Name, "@") {
			v.errorf(RuleValue, fieldPath(at, "name"), "`fleetctl lock` writes it", "a name with a digest needs no second digest")
		}
	}
	uniqueInLock(v, images, "images", "image", func(image LockedImage) string { return image.Name })
}

// FindImage returns the image of this name, or nil. l may be nil.
func (l *Lock) FindImage(name string) *LockedImage {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.Images, func(image LockedImage) bool { return image.Name == name })
	if i < 0 {
		return nil
	}
	return &l.Images[i]
}

// ImageDigestError says that the digest of an image differs from the lock.
type ImageDigestError struct {
	// Name is the image's name in the lock. From is the reference that is pulled, if it differs from Name.
	Name, From string
	// Digest is the digest that was found. Locked is the digest in the lock.
	Digest, Locked string
	// Bundle means that Digest comes from an offline bundle. LockedBundle means that Locked comes from one.
	Bundle, LockedBundle bool
}

// Error names the image and both digests.
func (e *ImageDigestError) Error() string {
	where := "the registry has"
	if e.Bundle {
		where = "the bundle has"
	}
	name := e.Name
	if e.From != "" && e.From != e.Name {
		name += " (" + e.From + ")"
	}
	return fmt.Sprintf("image %s does not match %s: %s %s, but the lock has %s", name, LockFileName, where, e.Digest, e.Locked)
}

// Hinted returns e with a hint that fits where the two digests come from.
func (e *ImageDigestError) Hinted() error {
	const relock = " If the new image is right, write its digest with `fleetctl lock`, and let somebody review it"
	switch {
	case e.Bundle && e.LockedBundle:
		return diag.Wrap("", e,
			"the lock was written with another bundle, maybe for another platform: use that bundle, or find out who made this one and why it "+
				"differs."+
				relock)
	case e.Bundle:
		return diag.Wrap("", e,
			"make the bundle again with `fleetctl bundle create`, which pulls the registry's image; or find out who made this bundle and why it "+
				"differs."+relock)
	case e.LockedBundle:
		return diag.Wrap("", e,
			"the lock was written with an offline bundle: use this bundle with --bundle, or find out why the registry has another image."+relock)
	}
	return diag.Wrap("", e, "the tag has another image now: find out who moved the tag and why."+relock)
}
