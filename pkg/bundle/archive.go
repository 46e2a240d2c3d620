package bundle

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
)

// dockerManifestFile is the index of a docker archive. Older engines look for it, because they do not know OCI layouts.
const dockerManifestFile = "manifest.json"

// Archive returns the images of the bundle that refs name, or all images without refs, in a form that a host can load. WriteArchive fails
// if the bundle lacks one of refs.
func (b *Bundle) Archive(refs ...string) host.ImageArchive { return &archive{bundle: b, refs: refs} }

// archive implements host.ImageArchive.
type archive struct {
	bundle *Bundle
	refs   []string
}

// Names implements host.ImageArchive.
func (a *archive) Names() []string {
	if len(a.refs) == 0 {
		return sortedImages(a.bundle.images)
	}
	names := make([]string, 0, len(a.refs))
	for _, ref := range a.refs {
		if full, err := FullReference(ref); err == nil {
			ref = full
		}
		names = append(names, ref)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Digest implements host.Digests.
func (a *archive) Digest(ref string) string {
	if full, err := FullReference(ref); err == nil {
		ref = full
	}
	if img, ok := a.bundle.find(ref); ok {
		return img.descriptor.Digest.String()
	}
	return ""
}

// WriteArchive implements host.ImageArchive. The archive is an OCI layout and a docker archive at the same time. It has each blob once,
// unchanged.
func (a *archive) WriteArchive(ctx context.Context, w io.Writer, refs ...string) error {
	images, err := a.choose(refs)
	if err != nil {
		return err
	}
	return diag.Wrap("write image archive", a.bundle.writeArchive(ctx, w, images), "")
}

// choose returns the images that refs name, sorted by name. It fails if a lacks one of them.
func (a *archive) choose(refs []string) ([]image, error) {
	own := a.Names()
	names := own
	if len(refs) > 0 {
		names = (&archive{bundle: a.bundle, refs: refs}).Names()
	}
	images := make([]image, 0, len(names))
	for _, ref := range names {
		img, ok := a.bundle.find(ref)
		if _, mine := slices.BinarySearch(own, ref); !ok || !mine {
			return nil, notFound(KindImage, ref)
		}
		images = append(images, img)
	}
	return images, nil
}

func (b *Bundle) writeArchive(ctx context.Context, w io.Writer, images []image) error {
	index, err := ociIndex(images)
	if err != nil {
		return err
	}
	docker, err := dockerManifest(images)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, small := range []struct{ name, content string }{
		{layoutFile, layoutContent}, {indexFile, string(index)}, {dockerManifestFile, string(docker)},
	} {
		if err := writeHeader(out, small.name, int64(len(small.content))); err != nil {
			return err
		}
		if _, err := io.WriteString(out, small.content); err != nil {
			return err
		}
	}
	if err := b.writeBlobs(ctx, out, blobsOf(images)); err != nil {
		return err
	}
	return out.Close()
}

// writeBlobs copies blobs to out. It stops in the middle of a wrong blob, so that no reader can take the archive for complete.
func (b *Bundle) writeBlobs(ctx context.Context, out *tar.Writer, blobs []v1.Descriptor) error {
	for _, d := range blobs {
		if err := writeHeader(out, blobPath(d.Digest), d.Size); err != nil {
			return err
		}
		if err := b.copyBlob(ctx, out, d); err != nil {
			return err
		}
	}
	return nil
}

// writeHeader starts a file in an archive. Times and owners are left out, so that the same content gives the same bytes.
func writeHeader(out *tar.Writer, name string, size int64) error {
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatPAX})
}

// blobsOf returns the blobs of images, each once.
func blobsOf(images []image) []v1.Descriptor {
	all := newUses()
	for _, img := range images {
		for _, d := range img.blobs() {
			all.add(d, "")
		}
	}
	return all.all()
}

func ociIndex(images []image) ([]byte, error) {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	for _, img := range images {
		d := img.descriptor
		if !strings.Contains(d.Annotations[annotationImageName], "@") { // a tag needs no proof
			d.Annotations = maps.Clone(d.Annotations)
			delete(d.Annotations, host.AnnotationIndex)
		}
		index.Manifests = append(index.Manifests, d)
	}
	return json.Marshal(index)
}

// dockerManifest returns the manifest.json of a docker archive. It has one entry for each image, with all its names. Names must have a tag
// there, so an image with only a digest is loaded without a name.
func dockerManifest(images []image) ([]byte, error) {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	entries := []*entry{}
	byDigest := map[v1.Hash]*entry{}
	for _, img := range images {
		e := byDigest[img.descriptor.Digest]
		if e == nil {
			e = &entry{Config: blobPath(img.manifest.Config.Digest), RepoTags: []string{}, Layers: []string{}}
			for _, l := range img.manifest.Layers {
				e.Layers = append(e.Layers, blobPath(l.Digest))
			}
			byDigest[img.descriptor.Digest] = e
			entries = append(entries, e)
		}
		if ref := img.descriptor.Annotations[annotationImageName]; !strings.Contains(ref, "@") {
			e.RepoTags = append(e.RepoTags, ref)
		}
	}
	return json.Marshal(entries)
}
