package components

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Image is an image that a component runs. Name is the name in the component, which the lock has, too. From is the address to pull the
// image from.
type Image = flux.Image

// asReleased are images that are pulled from where their components say.
func asReleased(names []string) []Image {
	images := make([]Image, 0, len(names))
	for _, name := range names {
		images = append(images, Image{Name: name, From: name})
	}
	return images
}

// ImageSource finds the digests of image references: in the bundle if there is one, else in the registries.
type ImageSource struct {
	Bundle *bundle.Bundle
	// Mirrors are asked in the place of registries.
	Mirrors map[string]string
	limit   time.Duration // lookupLimit, where it is zero
}

// lookupLimit bounds how long registries are asked in all: one may take a connection, and say nothing.
const lookupLimit = 30 * time.Second

// digests are the digests of an image. An entry of the lock that came from a bundle may have the digest of one platform's image of an index
// in the registry.
func (s *ImageSource) digests(ctx context.Context, image Image, locked *v1alpha1.LockedImage) (*bundle.Digests, error) {
	if s.Bundle != nil {
		return s.Bundle.Digests(image.From)
	}
	part := ""
	if locked != nil && locked.Bundle {
		part = locked.Digest
	}
	return bundle.Resolve(ctx, image.From, s.Mirrors, part)
}

// all are the digests of images, asked for side by side, and what went wrong with each; lock may be nil.
func (s *ImageSource) all(ctx context.Context, images []Image, lock *v1alpha1.Lock) ([]*bundle.Digests, []error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.limit, lookupLimit))
	defer cancel()
	found, errs := make([]*bundle.Digests, len(images)), make([]error, len(images))
	var group errgroup.Group
	group.SetLimit(downloads)
	for i, image := range images {
		group.Go(func() error {
			found[i], errs[i] = s.digests(ctx, image, lock.FindImage(image.Name))
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	return found, errs
}

// locked is the entry of the lock for an image with these digests, which fit the existing entry, if there is one. An entry from a registry
// replaces an entry from a bundle, and never the other way round.
func (s *ImageSource) locked(image Image, found *bundle.Digests, have *v1alpha1.LockedImage) v1alpha1.LockedImage {
	if have != nil && (!have.Bundle || s.Bundle != nil) {
		return *have
	}
	return v1alpha1.LockedImage{Name: image.Name, Digest: found.Digest, Bundle: s.Bundle != nil}
}

// verify compares the entry of the lock for an image with the image's digests. An entry that came only from a bundle is one platform's
// image of an index in the registry, or belongs to another bundle.
func (s *ImageSource) verify(image Image, found *bundle.Digests, locked *v1alpha1.LockedImage) error {
	if locked == nil || found.Digest == locked.Digest || locked.Bundle && found.Has(locked.Digest) {
		return nil
	}
	e := &v1alpha1.ImageDigestError{
		Name: image.Name, From: image.From, Digest: found.Digest, Locked: locked.Digest, Bundle: s.Bundle != nil, LockedBundle: locked.Bundle,
	}
	return e.Hinted()
}

// replacedNote tells that a registry's digest replaces a bundle's digest. From then on, machines of all platforms run the image with the
// registry's digest.
func replacedNote(locked *v1alpha1.LockedImage, now v1alpha1.LockedImage) []string {
	if locked == nil || locked.Digest == now.Digest {
		return nil
	}
	return []string{fmt.Sprintf(
		"%s replaces %s as the digest of image %s: that was the image of a bundle, for one platform, and this is the registry's index, which "+
			"has it.",
		now.Digest, locked.Digest, now.Name)}
}

// HeldImages are the images of components, held against a lock.
type HeldImages struct {
	// Locked is what the lock is to say of them.
	Locked []v1alpha1.LockedImage
	// Notes are of what the lock has from a bundle, and a registry tells of in another way.
	Notes []string
	// Unknown are those whose digest could not be found out, and why not: the lock does not know them, or has them from a bundle alone.
	Unknown []Image
	Err     error
}

// Pins are the digests by which the images have to run, by name. An image whose digest came from a bundle has no pin: readers of the fleet
// repo may run another platform, or pull from a registry that was filled from the bundle and knows no index.
func (h *HeldImages) Pins() map[string]string {
	pins := map[string]string{}
	for _, image := range h.Locked {
		if !image.Bundle {
			pins[image.Name] = image.Digest
		}
	}
	return pins
}

// Hold compares images with lock, which may be nil. It compares all images that the bundle has. Of the images in registries it compares
// only those whose entry in the lock came from a bundle, because the others are pulled by their digest. It looks up the digests of images
// that are not in the lock. The error has an *v1alpha1.ImageDigestError for each image with another digest.
func (s *ImageSource) Hold(ctx context.Context, images []Image, lock *v1alpha1.Lock) (*HeldImages, error) {
	held := &HeldImages{}
	var ask []Image
	var against []error
	for _, image := range images {
		name, digest, digested := strings.Cut(image.Name, "@")
		locked := lock.FindImage(image.Name)
		switch {
		case digested && s.Bundle != nil:
			against = append(against, s.holdDigest(image, name, digest))
		case digested:
		case s.Bundle == nil && locked != nil && !locked.Bundle:
			held.Locked = append(held.Locked, *locked)
		default:
			ask = append(ask, image)
		}
	}
	found, errs := s.all(ctx, ask, lock)
	var unknown []error
	for i, image := range ask {
		locked := lock.FindImage(image.Name)
		switch {
		case errors.Is(errs[i], bundle.ErrNotFound): // what a host needs of it is looked for elsewhere
			if locked != nil {
				held.Locked = append(held.Locked, *locked)
			}
		case errs[i] != nil && locked == nil && s.Bundle == nil:
			held.Unknown, unknown = append(held.Unknown, image), append(unknown, errs[i])
		case errs[i] != nil && s.Bundle == nil && bundle.Unasked(errs[i]): // its images may be in a registry that was filled from the bundle
			held.Locked = append(held.Locked, *locked)
			held.Unknown, unknown = append(held.Unknown, image), append(unknown, errs[i])
		case errs[i] != nil:
			against = append(against, errs[i])
		default:
			now := s.locked(image, found[i], locked)
			against = append(against, s.verify(image, found[i], locked))
			held.Locked, held.Notes = append(held.Locked, now), append(held.Notes, replacedNote(locked, now)...)
		}
	}
	held.Err = oncePerServer(unknown)
	return held, oncePerServer(against)
}

// holdDigest compares an image of the bundle with the digest that the component itself names.
func (s *ImageSource) holdDigest(image Image, name, digest string) error {
	found, err := s.Bundle.Digests(image.From)
	if errors.Is(err, bundle.ErrNotFound) {
		return nil
	}
	if err != nil || found.Has(digest) {
		return err
	}
	return diag.Errorf("make the bundle again with `fleetctl bundle create`",
		"image %s is not what its component names: the bundle has %s, wanted is %s", name, found.Digest, digest)
}

// entry is the entry of the lock for an image whose digests are found, and what to tell of it. locked is the old entry, or nil; check keeps
// it where it is the same image.
func (s *ImageSource) entry(
	image Image, found *bundle.Digests, locked *v1alpha1.LockedImage, check bool,
) (now v1alpha1.LockedImage, notes []string) {
	now = s.locked(image, found, locked)
	if e, other := errors.AsType[*v1alpha1.ImageDigestError](s.verify(image, found, locked)); other {
		return s.locked(image, found, nil), []string{fmt.Sprintf(
			"The digest of image %s differs from the locked one: %s instead of %s: find out why before you commit it.",
			image.Name, e.Digest, e.Locked)}
	}
	if locked != nil && check {
		return *locked, nil // the same image, told of in another way
	}
	return now, replacedNote(locked, now)
}

// lockedImages makes the entries of the lock for the images of components. Some entries stay as they are in the old lock, because their
// images cannot be compared: images that a bundle lacks; images that a registry does not tell, because not every editor of the repo may ask
// every registry; and, with LockCheck and without a bundle, images whose entry came from a bundle. With LockMore all its entries stay. With
// LockCheck, an image that the old lock lacks, too, is an error.
func (r *Reader) lockedImages(
	ctx context.Context, fleet *v1alpha1.Fleet, all []Component, lock *v1alpha1.Lock, how Locking,
) (out []v1alpha1.LockedImage, notes []string, err error) {
	check := how == LockCheck
	images, whole, err := imagesOf(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	if !whole && lock != nil { // whose images they are, nobody has read
		for _, known := range lock.Images {
			if !slices.ContainsFunc(images, func(image Image) bool { return image.Name == known.Name }) {
				out = append(out, known)
			}
		}
	}
	var ask []Image
	for _, image := range images {
		locked := lock.FindImage(image.Name)
		switch {
		case strings.Contains(image.Name, "@"):
		case locked != nil && (how == LockMore || check && r.bundle == nil && locked.Bundle):
			out = append(out, *locked)
		default:
			ask = append(ask, image)
		}
	}
	source := &ImageSource{Bundle: r.bundle, Mirrors: mirrorsOf(fleet)}
	found, errs := source.all(ctx, ask, lock)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	var kept, unknown []error
	for i, image := range ask {
		locked := lock.FindImage(image.Name)
		switch {
		case errors.Is(errs[i], bundle.ErrNotFound):
			notes = append(notes, fmt.Sprintf("The bundle has no image %s, so its digest is not known from it.", image.From))
		case errs[i] != nil && r.bundle != nil:
			continue // which is told in the end
		case errs[i] != nil && locked != nil:
			kept = append(kept, errs[i])
		case errs[i] != nil:
			unknown = append(unknown, errs[i])
		default:
			now, more := source.entry(image, found[i], locked, check)
			out, notes = append(out, now), append(notes, more...)
			continue
		}
		errs[i] = nil
		if locked != nil {
			out = append(out, *locked)
		}
	}
	if check && len(ask) > 0 && lock != nil && len(lock.Images) == 0 {
		notes = append(notes, "fleet.lock has no images: an older fleetctl wrote it. `fleetctl lock` adds them.")
	}
	if len(kept) > 0 {
		notes = append(notes, fmt.Sprintf("Not compared, so that fleet.lock keeps what it has of %s: %v",
			plain.Count(len(kept), "image"), oncePerServer(kept)))
	}
	switch count := plain.Count(len(unknown), "image"); {
	case len(unknown) > 0 && check:
		errs = append(errs, diag.NotReady("`fleetctl lock` adds them where the registries answer", "fleet.lock lacks %s: %w", count,
			oncePerServer(unknown)))
	case len(unknown) > 0:
		notes = append(notes,
			fmt.Sprintf("Not in fleet.lock, because no digest was found, are %s, which run by their tags until `fleetctl lock` adds them: %v",
				count, oncePerServer(unknown)))
	}
	slices.SortFunc(out, func(a, b v1alpha1.LockedImage) int { return cmp.Compare(a.Name, b.Name) })
	return out, notes, oncePerServer(errs)
}

// oncePerServer joins errors. It reports a server that was not reached, or was silent, only for the first download from this server.
func oncePerServer(errs []error) error {
	told := map[string]bool{}
	return errors.Join(slices.DeleteFunc(slices.Clone(errs), func(err error) bool {
		host := withoutAnswer(err)
		again := host != "" && told[host]
		told[host] = true
		return again
	})...)
}

// withoutAnswer returns the server that err says has not answered, or "".
func withoutAnswer(err error) string {
	if unreached, ok := errors.AsType[*contact.Error](err); ok {
		return unreached.Host
	}
	if silent, ok := errors.AsType[*contact.SilentError](err); ok {
		return silent.Host
	}
	return ""
}

// imagesOf are the images of components, once each; whole tells that all components were read.
func imagesOf(ctx context.Context, all []Component) (images []Image, whole bool, _ error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	whole = true
	for _, c := range all {
		if c.images == nil {
			whole = false
			continue
		}
		group.Go(func() error {
			found, err := c.images(ctx)
			mu.Lock()
			defer mu.Unlock()
			images = append(images, found...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(images, func(a, b Image) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.From, b.From)) })
	return slices.CompactFunc(images, func(a, b Image) bool { return a.Name == b.Name }), whole, nil
}

// mirrorsOf are the registries' mirrors of all management clusters.
func mirrorsOf(fleet *v1alpha1.Fleet) map[string]string {
	mirrors := map[string]string{}
	for i := range fleet.Spec.ManagementClusters {
		maps.Copy(mirrors, hosts.Mirrors(fleet.Spec.ManagementClusters[i].Host))
	}
	return mirrors
}
