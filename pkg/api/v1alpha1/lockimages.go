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
	// Name is the reference as the component names it, with a tag: registry.k8s.io/cluster-api/cluster-api-controller:v1.14.2. A registry in fleet.yaml that
	// takes the place of that one changes nothing here.
	Name string `json:"name"`
	// Digest is what the tag stands for in the registry ("sha256:…"): the index, of an image for several platforms.
	Digest string `json:"digest"`
	// Bundle tells that it was read from an offline bundle. The digest is then the registry's where the bundle says what that has under the tag, else that of the
	// image for the bundle's platform.
	Bundle bool `json:"bundle,omitempty"`
}

// imageDigest matches a digest as registries and container engines write it.
var imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (v *validator) lockedImages(images []LockedImage) {
	seen := map[string]bool{}
	for i, image := range images {
		at := itemPath("images", i)
		if image.Digest != "" && !imageDigest.MatchString(image.Digest) {
			v.errorf(RuleValue, fieldPath(at, "digest"), "`fleetctl lock` writes it", "not the digest of an image: sha256: and 64 hexadecimal digits")
		}
		if strings.Contains(image.Name, "@") {
			v.errorf(RuleValue, fieldPath(at, "name"), "`fleetctl lock` writes it", "a name with a digest needs no other one")
		}
		if seen[image.Name] {
			v.errorf(RuleDuplicate, at, "`fleetctl lock` writes it anew", "image %s is there twice", image.Name)
		}
		seen[image.Name] = true
	}
}

// FindImage returns the image of that name, or nil; nil of no lock.
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

// ImageDigestError says that an image is another one than the lock knows.
type ImageDigestError struct {
	// Name as the lock has it, and From as it is pulled, where that differs.
	Name, From string
	// Digest that was found, and the one that is Locked.
	Digest, Locked string
	// Bundle tells that it was found in an offline bundle, LockedBundle that the lock has it from one.
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
	return fmt.Sprintf("image %s is not what %s knows: %s %s, locked is %s", name, LockFileName, where, e.Digest, e.Locked)
}

// Hinted is e with what to do about it.
func (e *ImageDigestError) Hinted() error {
	const relock = " If it is right, `fleetctl lock` writes the new digest, for review"
	switch {
	case e.Bundle && e.LockedBundle:
		return diag.Wrap("", e, "the lock was written with another bundle, maybe for another platform: use that one, or find out who made this one and why it differs."+relock)
	case e.Bundle:
		return diag.Wrap("", e, "make the bundle anew with `fleetctl bundle create`, which takes what the registry has; else find out who made this one and why it differs."+relock)
	case e.LockedBundle:
		return diag.Wrap("", e, "the lock was written with an offline bundle: use it, with --bundle; else find out why the registry has another image."+relock)
	}
	return diag.Wrap("", e, "somebody has put another image under that tag: find out who and why."+relock)
}
