package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
)

// Writer makes a bundle in a folder. It is safe for concurrent use.
//
// It writes blobs when they are added, and index.json at the end, atomically. Only index.json makes the folder a bundle. A Writer that is
// killed or discarded makes no bundle. It leaves its blobs, and the next Create in the folder reuses them.
type Writer struct {
	root  *os.Root
	lock  *flock.Flock
	blobs store

	mu     sync.Mutex
	closed bool
	images map[string]v1.Descriptor // by full reference
	files  map[string]v1.Descriptor // by path
	known  map[v1.Hash]*blobState
}

// blobState serialises the writers of one blob, and records whether the blob is stored.
type blobState struct {
	sync.Mutex
	there bool
}

// Create starts a bundle in the folder dir. It makes a missing folder. It reuses blobs of an older bundle or of an interrupted Writer. An
// older bundle in dir stays complete until Close replaces it. Create fails if dir has files that do not belong to a bundle, or if another
// process writes to it.
func Create(dir string) (*Writer, error) {
	w, err := create(dir)
	return w, diag.Wrap("create bundle "+dir, err, "")
}

func create(dir string) (_ *Writer, err error) {
	if err := checkTarget(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = root.Close()
		}
	}()
	for _, d := range []string{blobsDir, partialDir} {
		if err := root.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	lock, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	if err := putWhole(root, layoutFile, []byte(layoutContent)); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &Writer{
		root: root, lock: lock, blobs: store{root},
		images: map[string]v1.Descriptor{}, files: map[string]v1.Descriptor{}, known: map[v1.Hash]*blobState{},
	}, nil
}

// AddImage adds img under the full form of ref (see FullReference). It writes only missing blobs. It fails if the bundle has an image with
// another digest under this reference.
func (w *Writer) AddImage(ref string, img v1.Image) error {
	full, err := FullReference(ref)
	if err != nil {
		return err
	}
	d, err := w.storeImage(context.Background(), img)
	if err != nil {
		return diag.Wrap("add image "+full, err, "")
	}
	return diag.Wrap("add image "+full, w.recordImage(full, d, nil), "")
}

// recordImage records the manifest d, whose blobs are stored, under its full reference. index is the registry's index under this
// reference, if there is one.
func (w *Writer) recordImage(full string, d v1.Descriptor, index []byte) error {
	d.Annotations = map[string]string{annotationRefName: full, annotationImageName: full}
	if index != nil {
		d.Annotations[host.AnnotationIndex] = string(index)
	}
	return w.record(w.images, full, d)
}

// storeImage writes the image's blobs, manifest last, and returns the descriptor of the manifest with its platform.
func (w *Writer) storeImage(ctx context.Context, img v1.Image) (v1.Descriptor, error) {
	raw, err := img.RawManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	m, err := img.Manifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	mediaType, err := img.MediaType()
	if err != nil {
		return v1.Descriptor{}, err
	}
	if !isImageManifest(mediaType) {
		return v1.Descriptor{}, fmt.Errorf("media type %q is not for an image", mediaType)
	}
	switch { // before the download, because the config is read into memory
	case m.Config.Size > maxManifest:
		return v1.Descriptor{}, fmt.Errorf("its config has %d bytes, more than an image needs", m.Config.Size)
	case len(m.Layers) > maxLayers:
		return v1.Descriptor{}, fmt.Errorf("it has more than %d layers", maxLayers)
	}
	if err := w.ensure(ctx, m.Config, func() (io.ReadCloser, error) {
		config, err := img.RawConfigFile()
		return io.NopCloser(bytes.NewReader(config)), err
	}); err != nil {
		return v1.Descriptor{}, fmt.Errorf("config: %w", err)
	}
	for _, l := range m.Layers {
		if err := w.ensure(ctx, l, func() (io.ReadCloser, error) {
			layer, err := img.LayerByDigest(l.Digest)
			if err != nil {
				return nil, err
			}
			return layer.Compressed()
		}); err != nil {
			return v1.Descriptor{}, fmt.Errorf("layer %s: %w", l.Digest, err)
		}
	}
	d := describe(raw)
	d.MediaType = mediaType
	if d.Platform, err = w.platform(m.Config); err != nil {
		return v1.Descriptor{}, err
	}
	return d, w.ensureBytes(ctx, d, raw)
}

// platform reads an image's platform from its config, which is already stored.
func (w *Writer) platform(config v1.Descriptor) (*v1.Platform, error) {
	raw, err := w.blobs.read(config)
	if err != nil {
		return nil, err
	}
	c, err := v1.ParseConfigFile(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	return c.Platform(), nil
}

// AddFile adds a plain file. The path is relative, clean and slash-separated; the package comment lists the paths. AddFile fails if the
// bundle has a file with other content under this path.
func (w *Writer) AddFile(path string, content []byte) error {
	return w.addFile(context.Background(), path, content)
}

func (w *Writer) addFile(ctx context.Context, path string, content []byte) error {
	op := fmt.Sprintf("add file %q", path)
	if err := checkFilePath(path); err != nil {
		return diag.Wrap(op, err, "")
	}
	if len(content) > maxFile {
		return diag.Wrap(op, fmt.Errorf("it is larger than %d bytes", maxFile), "")
	}
	d := describe(content)
	if err := w.ensureBytes(ctx, d, content); err != nil {
		return diag.Wrap(op, err, "")
	}
	d.MediaType = fileMediaType
	d.Annotations = map[string]string{annotationTitle: path}
	return diag.Wrap(op, w.record(w.files, path, d), "")
}

// checkFilePath accepts only paths that mean the same place below a folder on every operating system.
func checkFilePath(path string) error {
	if path == "." || !fs.ValidPath(path) || !filepath.IsLocal(filepath.FromSlash(path)) || strings.ContainsAny(path, "\\:\x00") {
		return errors.New("not a clean relative path with slashes")
	}
	// In a user's working folder, .git/config or .envrc would run commands. No file of a bundle needs such a name.
	if strings.HasPrefix(path, ".") || strings.Contains(path, "/.") {
		return errors.New("the name of a file in a bundle does not begin with a dot")
	}
	return nil
}

// record records a name for the index. Recording the same name and digest again is no error.
func (w *Writer) record(in map[string]v1.Descriptor, key string, d v1.Descriptor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fs.ErrClosed
	}
	if old, ok := in[key]; ok && old.Digest != d.Digest {
		return fmt.Errorf("the bundle already has this name with digest %s, not %s", old.Digest, d.Digest)
	}
	in[key] = d
	return nil
}

func (w *Writer) ensureBytes(ctx context.Context, d v1.Descriptor, content []byte) error {
	return w.ensure(ctx, d, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
}

// ensure stores the blob if it is missing. It calls open only if it is.
func (w *Writer) ensure(ctx context.Context, d v1.Descriptor, open func() (io.ReadCloser, error)) error {
	if err := checkSHA256(d.Digest); err != nil {
		return err
	}
	w.mu.Lock()
	state := w.known[d.Digest]
	if state == nil {
		state = &blobState{}
		w.known[d.Digest] = state
	}
	w.mu.Unlock()

	state.Lock()
	defer state.Unlock()
	if state.there || w.blobs.verify(ctx, d) == nil {
		state.there = true
		return nil
	}
	content, err := open()
	if err != nil {
		return err
	}
	if err := w.blobs.put(ctx, d, content); err != nil {
		return err
	}
	state.there = true
	return nil
}

// Close writes index.json, removes blobs that index.json does not need, and releases the folder. The bundle then has exactly the added
// images and files. After an error there is no new bundle. Close after Close or Discard does nothing.
func (w *Writer) Close() error {
	if w.isClosed() {
		return nil
	}
	err := w.writeIndex()
	if err == nil {
		err = w.prune()
	}
	return diag.Wrap("write bundle "+w.root.Name(), errors.Join(err, w.release()), "")
}

// Discard releases the folder without making a bundle. The blobs stay for the next Create. Discard after Close does nothing, so callers can
// defer it.
func (w *Writer) Discard() {
	if !w.isClosed() {
		_ = w.release()
	}
}

func (w *Writer) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// release frees the lock and removes the folder of incomplete files.
func (w *Writer) release() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	// Remove the folder while the lock keeps other processes out. Some systems cannot remove open files: try again after the unlock.
	err := w.root.RemoveAll(partialDir)
	unlocked := w.lock.Unlock()
	if err != nil {
		err = w.root.RemoveAll(partialDir)
	}
	return errors.Join(err, unlocked, w.root.Close())
}

// writeIndex stores the manifest of the files, and then index.json by a rename. Names are sorted, so that the same content always gives the
// same bytes.
func (w *Writer) writeIndex() error {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	for _, ref := range sortedKeys(w.images) {
		index.Manifests = append(index.Manifests, w.images[ref])
	}
	if len(w.files) > 0 {
		d, err := w.writeFilesManifest()
		if err != nil {
			return err
		}
		index.Manifests = append(index.Manifests, d)
	}
	raw, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.SyncFolder(w.root, blobsDir); err != nil { // index.json must not reach the disk before the blobs that it names
		return err
	}
	return putWhole(w.root, indexFile, append(raw, '\n'))
}

// putWhole replaces a file of the bundle atomically. A killed process leaves its incomplete file in partialDir, where it does no harm.
func putWhole(root *os.Root, name string, content []byte) error {
	staged, err := atomicfile.Stage(root, partialDir+"/"+name, content, 0o644, false)
	if err != nil {
		return err
	}
	if err := atomicfile.Flush(staged); err != nil {
		return errors.Join(err, staged.Discard())
	}
	if err := staged.PlaceAs(name); err != nil {
		return err
	}
	return atomicfile.SyncFolder(root, ".")
}

func (w *Writer) writeFilesManifest() (v1.Descriptor, error) {
	ctx := context.Background()
	config := describe([]byte(emptyConfig))
	config.MediaType = emptyMediaType
	if err := w.ensureBytes(ctx, config, []byte(emptyConfig)); err != nil {
		return v1.Descriptor{}, err
	}
	m := v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: FilesArtifactType, Config: config,
	}
	for _, path := range sortedKeys(w.files) {
		m.Layers = append(m.Layers, w.files[path])
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return v1.Descriptor{}, err
	}
	d := describe(raw)
	d.MediaType, d.ArtifactType = types.OCIManifestSchema1, FilesArtifactType
	return d, w.ensureBytes(ctx, d, raw)
}

// prune removes blobs that this Writer neither wrote nor reused.
func (w *Writer) prune() error {
	entries, err := fs.ReadDir(w.root.FS(), blobsDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if s := w.known[v1.Hash{Algorithm: "sha256", Hex: e.Name()}]; s != nil && s.there {
			continue
		}
		if err := w.root.RemoveAll(blobsDir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(m map[string]v1.Descriptor) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
