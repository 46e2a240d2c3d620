// Package images keeps container images unpacked, so that their programs can be started as processes. The store has each layer once,
// under its digest, and images share layers. An image comes from an archive (an offline bundle) or from a registry. Every byte is
// verified against a digest. Layers and images appear in the store completely or not at all, so several processes can use one store at
// the same time.
//
// Programs run without a chroot. The store therefore makes links relative, so that none leads out of its image.
package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/singleflight"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Store is a folder of unpacked images. Its methods can be called by several goroutines and processes at once.
type Store struct {
	dir      string
	mirrors  map[string]string
	insecure bool
	flights  singleflight.Group
}

// Options of Open.
type Options struct {
	// Mirrors are asked instead of a registry: "registry.k8s.io" → "mirror.example.com/k8s".
	Mirrors map[string]string
	// Insecure speaks plain HTTP to registries.
	Insecure bool
}

// Image is an image in the store.
type Image struct {
	// Ref is its full reference.
	Ref string
	// Digest of its manifest, "sha256:…".
	Digest string
	// Root is the folder of its files. Other images share them, so they must not be changed.
	Root string
	// Config says how a container of the image starts.
	Config v1.Config
}

// The folders of a store.
const (
	layersDir = "layers" // <hex>: the files of one layer, whiteouts still files
	imagesDir = "images" // <hex>: config.json, and root, which is a folder, or a link to the folder of the only layer
	refsDir   = "refs"   // <hex of the reference's own digest>: which image a reference stands for
	tmpDir    = "tmp"
)

// staleAfter is the age from which files in tmp belong to a process that was killed.
const staleAfter = 24 * time.Hour

// Open opens the store in dir. It makes a missing one.
func Open(dir string, opts Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{layersDir, imagesDir, refsDir, tmpDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, diag.Wrap("open the image store", err, "")
		}
	}
	s := &Store{dir: dir, mirrors: opts.Mirrors, insecure: opts.Insecure}
	s.removeStale()
	return s, nil
}

// removeStale removes files that killed processes left in tmp.
func (s *Store) removeStale() {
	entries, err := os.ReadDir(s.path(tmpDir))
	if err != nil {
		return // such files only take space
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(s.path(tmpDir, e.Name()))
		}
	}
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// Lookup returns the image that ref means. ok is false if the store lacks it. Lookup asks no registry.
func (s *Store) Lookup(ref string) (img Image, ok bool, err error) {
	full, err := parse(ref)
	if err != nil {
		return Image{}, false, err
	}
	hex := ""
	if digested, is := full.(reference.Digested); is {
		hex = digested.Digest().Encoded()
	} else if raw, err := os.ReadFile(s.refFile(full)); err == nil {
		hex = string(raw)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Image{}, false, err
	}
	if hex == "" {
		return Image{}, false, nil
	}
	return s.image(full.String(), hex)
}

// image reads the image under a manifest's digest, hex. It returns false if the image is missing or damaged, so that the caller gets it
// again.
func (s *Store) image(ref, hex string) (Image, bool, error) {
	raw, err := os.ReadFile(s.path(imagesDir, hex, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, false, nil
	}
	if err != nil {
		return Image{}, false, err
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(raw, &config); err != nil {
		return Image{}, false, nil //nolint:nilerr // damaged by a power cut
	}
	root, err := filepath.EvalSymlinks(s.path(imagesDir, hex, "root"))
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, false, nil // a part of the cache was removed
	}
	if err != nil {
		return Image{}, false, err
	}
	return Image{Ref: ref, Digest: "sha256:" + hex, Root: root, Config: config.Config}, true, nil
}

// parse returns the full form of a reference, as a container engine reads it.
func parse(ref string) (reference.Named, error) {
	full, err := reference.ParseDockerRef(ref)
	if err != nil {
		return nil, diag.Errorf("an image reference looks like registry.example.com/team/app:v1.2.3",
			"%q is not an image reference: %w", ref, err)
	}
	return full, nil
}

func (s *Store) refFile(ref reference.Named) string {
	return s.path(refsDir, hexOf([]byte(ref.String())))
}

// tag records that ref means the image with the digest hex.
func (s *Store) tag(ref reference.Named, hex string) error {
	if _, digested := ref.(reference.Digested); digested {
		return nil
	}
	return atomicfile.WriteVolatile(s.refFile(ref), []byte(hex), 0o600) // an empty file, after a power cut, counts as missing
}

// alias records that the index with the digest index means the image, which the index names for this machine.
func (s *Store) alias(index, image string) error {
	err := os.Symlink(image, s.path(imagesDir, index))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// publish moves a finished folder to its place. If another process has moved one there before, that is no error, because both have the same
// content.
//
// publish flushes the files to the disk first. Nothing checks the content later, and a power cut could leave programs full of zeros.
func publish(from, to string) error {
	err := atomicfile.SyncTree(from)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err == nil {
		return nil
	}
	if _, statErr := os.Lstat(to); statErr == nil {
		return os.RemoveAll(from)
	}
	return errors.Join(err, os.RemoveAll(from))
}

// checkPlatform refuses an image for another kind of machine.
func checkPlatform(ref string, config *v1.ConfigFile) error {
	want := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if config.OS == want.OS && config.Architecture == want.Architecture {
		return nil
	}
	return diag.Errorf("use a bundle or an image for "+want.String(),
		"image %s is for %s/%s, this machine is %s", ref, config.OS, config.Architecture, want.String())
}

// assemble makes the image of a manifest whose layers are all in the store.
func (s *Store) assemble(ctx context.Context, ref, hex string, rawConfig []byte, layers []v1.Hash) error {
	if len(layers) > maxLayers {
		return fmt.Errorf("it has more than %d layers", maxLayers)
	}
	_, missing := os.Lstat(s.path(imagesDir, hex)) // look first: another process may be making the image
	if _, ok, err := s.image(ref, hex); err != nil || ok {
		return err
	}
	dir, err := os.MkdirTemp(s.path(tmpDir), "image-")
	if err != nil {
		return err
	}
	damaged := filepath.Join(dir, "damaged")
	if missing == nil { // the image exists but is damaged
		if err := os.Rename(s.path(imagesDir, hex), damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, os.RemoveAll(dir))
		}
	}
	err = errors.Join(os.RemoveAll(damaged), os.WriteFile(filepath.Join(dir, "config.json"), rawConfig, 0o600), s.makeRoot(ctx, dir, layers))
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return publish(dir, s.path(imagesDir, hex))
}

// makeRoot makes dir/root. An image of one layer gets a link to the layer's folder.
func (s *Store) makeRoot(ctx context.Context, dir string, layers []v1.Hash) error {
	root := filepath.Join(dir, "root")
	if len(layers) == 1 {
		return os.Symlink(filepath.Join("..", "..", layersDir, layers[0].Hex), root)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	for _, l := range layers {
		if err := mergeLayer(ctx, s.path(layersDir, l.Hex), root); err != nil {
			return fmt.Errorf("layer %s: %w", l, err)
		}
	}
	return nil
}
