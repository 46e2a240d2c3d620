package images

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
)

const (
	maxIndex = 16 << 20
	// maxDocument is the largest size in bytes of a manifest or config. A larger blob is a layer.
	maxDocument = 4 << 20
	blobPrefix  = "blobs/sha256/"
)

// Load puts the images that refs name from archive into the store. Without refs it loads all images. It does not read an image again
// that the store has with the same digest.
func (s *Store) Load(ctx context.Context, archive host.ImageArchive, refs ...string) error {
	if len(refs) == 0 {
		refs = archive.Names()
	}
	if len(refs) == 0 {
		return nil
	}
	missing, err := s.missing(ctx, archive, refs)
	if err != nil || len(missing) == 0 {
		return diag.Wrap("load images", err, "")
	}
	l := &loader{store: s, documents: map[string][]byte{}}
	err = stream(ctx, archive, missing, func(r io.Reader) error { return l.read(ctx, r) })
	if err == nil {
		err = l.finish(ctx)
	}
	return diag.Wrap("load images", err, "")
}

// errEnough ends the reading of an archive whose rest is not needed.
var errEnough = errors.New("enough was read")

// stream passes the archive's bytes to read.
func stream(ctx context.Context, archive host.ImageArchive, refs []string, read func(io.Reader) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive.WriteArchive(ctx, w, refs...)
		_ = w.CloseWithError(err) // nil is end of file
		written <- err
	}()
	readErr := read(r)
	_ = r.CloseWithError(errEnough)
	writeErr := <-written
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(readErr, errEnough):
		return nil
	case writeErr != nil && !errors.Is(writeErr, errEnough):
		return writeErr // rather than read's error: it names the faulty file
	}
	return readErr
}

// missing returns the refs whose image is not in the store yet. It reads only the archive's index.
func (s *Store) missing(ctx context.Context, archive host.ImageArchive, refs []string) ([]string, error) {
	var missing []string
	err := stream(ctx, archive, refs, func(r io.Reader) error {
		entries, err := readIndex(tar.NewReader(r))
		if err != nil {
			return err
		}
		for _, e := range entries {
			full, err := parse(e.ref)
			if err != nil {
				return err
			}
			_, there, err := s.image(e.ref, e.digest.Hex)
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, e.ref)
			} else if err := s.name(full, e); err != nil {
				return err
			}
		}
		return errEnough
	})
	return missing, err
}

// indexEntry is an image that an archive's index names.
type indexEntry struct {
	ref    string
	digest v1.Hash
	index  string // host.AnnotationIndex
}

// readIndex reads the archive up to its index.
func readIndex(in *tar.Reader) ([]indexEntry, error) {
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the archive has no index.json: it is not an OCI layout")
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		if path.Clean(h.Name) == "index.json" {
			return parseIndex(in)
		}
	}
}

func parseIndex(r io.Reader) ([]indexEntry, error) {
	raw, err := readAtMost(r, maxIndex)
	if err != nil {
		return nil, fmt.Errorf("read index.json: %w", err)
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("read index.json: %w", err)
	}
	var entries []indexEntry
	for _, d := range index.Manifests {
		for _, annotation := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
			if ref := d.Annotations[annotation]; ref != "" {
				entries = append(entries, indexEntry{ref, d.Digest, d.Annotations[host.AnnotationIndex]})
				break
			}
		}
	}
	return entries, nil
}

// loader is one run of Load. Blobs may come in any order. It keeps documents, and unpacks layers as they come.
type loader struct {
	store     *Store
	entries   []indexEntry
	documents map[string][]byte // by digest
}

func (l *loader) read(ctx context.Context, r io.Reader) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		name := path.Clean(h.Name)
		switch {
		case name == "index.json":
			if l.entries, err = parseIndex(in); err != nil {
				return err
			}
		case strings.HasPrefix(name, blobPrefix) && h.Typeflag == tar.TypeReg:
			if err := l.blob(ctx, strings.TrimPrefix(name, blobPrefix), h.Size, in); err != nil {
				return err
			}
		}
	}
}

func (l *loader) blob(ctx context.Context, hex string, size int64, r io.Reader) error {
	digest, err := v1.NewHash("sha256:" + hex)
	if err != nil {
		return err
	}
	if size > maxDocument {
		if l.store.hasLayer(digest) {
			return nil
		}
		return l.explain(digest, l.store.addLayer(ctx, digest, r))
	}
	content, err := readAtMost(r, maxDocument)
	if err != nil {
		return l.explain(digest, err)
	}
	if got := hexOf(content); got != hex {
		return l.explain(digest, fmt.Errorf("blob sha256:%s: content has digest sha256:%s", hex, got))
	}
	l.documents[hex] = content
	return nil
}

// explain adds to err the image that the blob belongs to, if its manifest was read.
func (l *loader) explain(digest v1.Hash, err error) error {
	if err == nil {
		return nil
	}
	for _, e := range l.entries {
		m, mErr := l.manifest(e)
		if mErr != nil {
			continue
		}
		uses := e.digest == digest || m.Config.Digest == digest ||
			slices.ContainsFunc(m.Layers, func(d v1.Descriptor) bool { return d.Digest == digest })
		if uses {
			return fmt.Errorf("image %s: %w", e.ref, err)
		}
	}
	return err
}

// manifest returns an image's manifest. If the entry is an index, it returns the manifest for this machine's platform.
func (l *loader) manifest(e indexEntry) (*v1.Manifest, error) {
	digest := e.digest
	for range 3 {
		raw, ok := l.documents[digest.Hex]
		if !ok {
			return nil, fmt.Errorf("image %s: the archive lacks its manifest %s", e.ref, digest)
		}
		var either struct {
			v1.Manifest
			Manifests []v1.Descriptor `json:"manifests"`
		}
		if err := json.Unmarshal(raw, &either); err != nil {
			return nil, fmt.Errorf("image %s: %w", e.ref, err)
		}
		if len(either.Manifests) == 0 {
			return &either.Manifest, nil
		}
		i := slices.IndexFunc(either.Manifests, func(d v1.Descriptor) bool {
			return d.Platform != nil && d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
		})
		if i < 0 {
			return nil, noVariant(e.ref, either.Manifests)
		}
		digest = either.Manifests[i].Digest
	}
	return nil, fmt.Errorf("image %s: its index nests too deep", e.ref)
}

// noVariant is the error for an image without a variant for this machine. It names the variants.
func noVariant(ref string, variants []v1.Descriptor) error {
	var names []string
	for _, d := range variants {
		if d.Platform != nil {
			names = append(names, d.Platform.String())
		}
	}
	return diag.Errorf("use an image for linux/"+runtime.GOARCH,
		"image %s has no variant for linux/%s (it has %s)", ref, runtime.GOARCH, strings.Join(names, ", "))
}

// finish assembles the images after the whole archive was read.
func (l *loader) finish(ctx context.Context) error {
	for _, e := range l.entries {
		if err := l.finishImage(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) finishImage(ctx context.Context, e indexEntry) error {
	full, err := parse(e.ref)
	if err != nil {
		return err
	}
	m, err := l.manifest(e)
	if err != nil {
		return err
	}
	raw, ok := l.documents[m.Config.Digest.Hex]
	if !ok {
		return fmt.Errorf("image %s: the archive lacks its config %s", e.ref, m.Config.Digest)
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("image %s: %w", e.ref, err)
	}
	if err := checkPlatform(e.ref, &config); err != nil {
		return err
	}
	layers := make([]v1.Hash, 0, len(m.Layers))
	for _, d := range m.Layers {
		layers = append(layers, d.Digest)
		if l.store.hasLayer(d.Digest) {
			continue
		}
		small, ok := l.documents[d.Digest.Hex]
		if !ok {
			return fmt.Errorf("image %s: the archive lacks its layer %s", e.ref, d.Digest)
		}
		if err := l.store.addLayer(ctx, d.Digest, strings.NewReader(string(small))); err != nil {
			return fmt.Errorf("image %s: %w", e.ref, err)
		}
	}
	if err := l.store.keep(ctx, full, e.digest.Hex, raw, layers); err != nil {
		return err
	}
	return l.store.name(full, e)
}

// name records which image ref means. A ref with the digest of an index needs that index in the archive, and the index has to name the
// image: all hosts share the store, so a wrong image under a digest would harm all of them.
func (s *Store) name(ref reference.Named, e indexEntry) error {
	digested, ok := ref.(reference.Digested)
	if !ok {
		return s.tag(ref, e.digest.Hex)
	}
	wanted := digested.Digest().Encoded()
	if wanted == e.digest.Hex {
		return nil
	}
	var index v1.IndexManifest
	if len(e.index) > maxDocument || hexOf([]byte(e.index)) != wanted || json.Unmarshal([]byte(e.index), &index) != nil ||
		!slices.ContainsFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Digest == e.digest }) {
		return diag.Errorf("make the bundle again with `fleetctl bundle create`",
			"image %s: the archive has the manifest %s, which the index with that digest does not name", e.ref, e.digest)
	}
	return s.alias(wanted, e.digest.Hex)
}

// keep assembles the image. The caller records its name.
func (s *Store) keep(ctx context.Context, ref reference.Named, hex string, rawConfig []byte, layers []v1.Hash) error {
	if err := s.assemble(ctx, ref.String(), hex, rawConfig, layers); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	return nil
}

// readAtMost reads all of r. It fails if r has more than limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return content, err
}
