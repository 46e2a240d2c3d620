package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The limits of content that is read into memory. A bundle may come from an untrusted source.
const (
	maxIndex    = 16 << 20
	maxManifest = 4 << 20
	maxFile     = 256 << 20
	// maxManifests bounds the bytes of all manifests together. A manifest counts once for each of its names in the index, because it is read
	// and kept for each name. A usual manifest has a few kilobytes.
	maxManifests = 16 << 20
	// maxListed bounds the entries of an index or a manifest. maxLayers bounds an image's layers; container engines accept fewer.
	maxListed = 10_000
	maxLayers = 1_000
	// maxWritten bounds the bytes that WriteFiles writes, because one blob can have any number of names.
	maxWritten = 1 << 30
	// maxTold bounds the reported problems of one list.
	maxTold = 20
)

// listed are the descriptors in a document. Decoding fails after maxListed of them, because a short text can list millions of empty
// descriptors.
type listed []v1.Descriptor

// UnmarshalJSON implements json.Unmarshaler.
func (l *listed) UnmarshalJSON(raw []byte) error {
	*l = nil
	in := json.NewDecoder(bytes.NewReader(raw))
	switch first, err := in.Token(); {
	case err != nil:
		return err
	case first == nil: // null
		return nil
	case first != json.Delim('['):
		return errors.New("expected a list")
	}
	for in.More() {
		if len(*l) == maxListed {
			return fmt.Errorf("the list has more than %d entries", maxListed)
		}
		var d v1.Descriptor
		if err := in.Decode(&d); err != nil {
			return err
		}
		*l = append(*l, d)
	}
	return nil
}

// told joins the first maxTold problems, and adds the number of the others.
func told(problems []error) error {
	if more := len(problems) - maxTold; more > 0 {
		problems = append(slices.Clone(problems[:maxTold]), fmt.Errorf("and %d more", more))
	}
	return errors.Join(problems...)
}

// load reads oci-layout, index.json and all manifests. It adds errors of manifests to b.problems, and returns errors of oci-layout and
// index.json.
func (b *Bundle) load() error {
	if err := b.checkLayout(); err != nil {
		return err
	}
	raw, err := readBounded(b.root, indexFile, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return diag.Errorf("run fleetctl bundle create again: it reuses the files in the folder",
			"there is no %s: this is not a bundle, or its creation was interrupted", indexFile)
	}
	if err != nil {
		return err
	}
	b.raw = raw
	index, err := parseIndex(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	for _, d := range index {
		if d.ArtifactType == FilesArtifactType {
			err = b.loadFiles(d)
		} else {
			err = b.loadImage(d)
		}
		if err != nil {
			b.problems = append(b.problems, err)
		}
	}
	return nil
}

func (b *Bundle) checkLayout() error {
	raw, err := readBounded(b.root, layoutFile, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: this is not a bundle", layoutFile)
	}
	if err != nil {
		return err
	}
	var layout struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := json.Unmarshal(raw, &layout); err != nil {
		return fmt.Errorf("%s: %w", layoutFile, err)
	}
	if layout.Version != layoutVersion {
		return fmt.Errorf("%s: version %q is not supported", layoutFile, layout.Version)
	}
	return nil
}

// parseIndex returns the entries of an index.json. The error joins the errors of all wrong entries.
func parseIndex(raw []byte) ([]v1.Descriptor, error) {
	var index struct {
		Manifests listed `json:"manifests"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var problems []error
	size := int64(0)
	for i, d := range index.Manifests {
		if err := checkEntry(d, seen); err != nil {
			problems = append(problems, fmt.Errorf("entry %d: %w", i, err))
			continue
		}
		size += d.Size
	}
	if size > maxManifests {
		problems = append(problems, fmt.Errorf("the manifests are larger than %d bytes together", maxManifests))
	}
	return index.Manifests, told(problems)
}

// checkEntry checks one descriptor of the index. seen has the references of earlier entries.
func checkEntry(d v1.Descriptor, seen map[string]bool) error {
	switch {
	case !isImageManifest(d.MediaType):
		return fmt.Errorf("media type %q is neither for an image nor for files", d.MediaType)
	case d.Size < 0 || d.Size > maxManifest:
		return fmt.Errorf("its size of %s is not valid for a manifest", plain.Count(int(d.Size), "byte"))
	}
	if err := checkSHA256(d.Digest); err != nil {
		return err
	}
	if d.ArtifactType == FilesArtifactType {
		return nil
	}
	ref := d.Annotations[annotationImageName]
	if full, err := FullReference(ref); err != nil {
		return err
	} else if full != ref {
		return fmt.Errorf("%q is not a full image reference, which would be %q", ref, full)
	}
	if seen[ref] {
		return fmt.Errorf("image %s is listed twice", ref)
	}
	seen[ref] = true
	return nil
}

func (b *Bundle) loadImage(d v1.Descriptor) error {
	ref := d.Annotations[annotationImageName]
	b.uses.add(d, "image "+ref)
	m, err := b.readManifest(d)
	if err != nil {
		return b.corrupt(d, err)
	}
	if len(m.Layers) > maxLayers {
		return b.corrupt(d, fmt.Errorf("it has more than %d layers", maxLayers))
	}
	img := image{descriptor: d, manifest: m}
	if err := img.checkName(ref); err != nil {
		return b.corrupt(d, err)
	}
	for _, blob := range img.blobs()[1:] {
		if err := checkBlob(blob); err != nil {
			return b.corrupt(d, err)
		}
	}
	for _, blob := range img.blobs()[1:] {
		b.uses.add(blob, "image "+ref)
	}
	b.images[ref] = img
	return nil
}

func (b *Bundle) loadFiles(d v1.Descriptor) error {
	b.uses.add(d, "the list of files")
	m, err := b.readManifest(d)
	if err != nil {
		return b.corrupt(d, err)
	}
	if err := checkBlob(m.Config); err != nil {
		return b.corrupt(d, err)
	}
	b.uses.add(m.Config, "the list of files")
	var problems []error
	for _, l := range m.Layers {
		p := l.Annotations[annotationTitle]
		err := errors.Join(checkBlob(l), checkFilePath(p))
		switch _, twice := b.files[p]; {
		case err != nil:
		case twice:
			err = errors.New("it is listed twice")
		case l.Size > maxFile:
			err = fmt.Errorf("it is larger than %d bytes", maxFile)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("file %q: %w", p, err))
			continue
		}
		b.files[p] = l
		b.uses.add(l, "file "+p)
	}
	return b.corrupt(d, told(problems))
}

func (b *Bundle) readManifest(d v1.Descriptor) (*v1.Manifest, error) {
	raw, err := b.blobs.read(d)
	if err != nil {
		return nil, err
	}
	var m struct {
		v1.Manifest
		Layers listed `json:"layers"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m.Manifest.Layers = m.Layers
	return &m.Manifest, nil
}

func checkBlob(d v1.Descriptor) error {
	if d.Size < 0 {
		return fmt.Errorf("blob %s has size %d", d.Digest, d.Size)
	}
	return checkSHA256(d.Digest)
}

// readBounded reads a small regular file.
func readBounded(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := within.Open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return raw, err
}
