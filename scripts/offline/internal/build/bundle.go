package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
)

// bundle writes the bundle, unless the last build wrote the same into the same folder.
func (b *builder) bundle(ctx context.Context) (err error) {
	key, err := b.bundleKey()
	if err != nil {
		return err
	}
	mark := b.mark()
	if b.unchanged(mark, key) {
		b.report.Say("bundle: unchanged in %s", b.Out)
		return nil
	}
	step := b.report.Start(fmt.Sprintf("bundle of %d images and %d files", len(b.images), len(b.files)))
	defer func() { step.End(err) }()
	if err := b.write(ctx); err != nil {
		return err
	}
	index, err := b.indexDigest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(mark, []byte(key+" "+index), 0o644); err != nil {
		return err
	}
	b.report.Say("bundle: %s", b.Out)
	return nil
}

func (b *builder) write(ctx context.Context) error {
	w, err := bundle.Create(b.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	for _, ref := range slices.Sorted(maps.Keys(b.images)) {
		if err := errors.Join(ctx.Err(), w.AddImage(ref, b.images[ref])); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		if err := w.AddFile(path, b.files[path]); err != nil {
			return err
		}
	}
	return w.Close()
}

func (b *builder) bundleKey() (string, error) {
	key := cache.NewKey("bundle/1")
	for _, ref := range slices.Sorted(maps.Keys(b.images)) {
		digest, err := b.images[ref].Digest()
		if err != nil {
			return "", fmt.Errorf("image %s: %w", ref, err)
		}
		key.Add(ref, digest.String())
	}
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		key.Add(path, string(b.files[path]))
	}
	return key.String()
}

// mark is the file that remembers what was last written into b.Out. It lies in the cache: a bundle holds nothing else
// than what its index names.
func (b *builder) mark() string {
	sum := sha256.Sum256([]byte(b.Out))
	return filepath.Join(b.cache.Dir(), "written", hex.EncodeToString(sum[:8]))
}

func (b *builder) unchanged(mark, key string) bool {
	last, err := os.ReadFile(mark)
	if err != nil {
		return false
	}
	index, err := b.indexDigest()
	return err == nil && string(last) == key+" "+index
}

func (b *builder) indexDigest() (string, error) {
	index, err := os.ReadFile(filepath.Join(b.Out, "index.json"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(index)
	return hex.EncodeToString(sum[:]), nil
}
