package bundle

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Pack writes the bundle in the folder dir to the archive dest, a .tar.zst. dest appears only when it is complete. The same bundle always
// gives the same bytes. Pack verifies every digest. For a damaged bundle it returns an error and writes no archive.
func Pack(ctx context.Context, dir, dest string) error {
	return diag.Wrap("pack bundle "+dir, pack(ctx, dir, dest), "")
}

func pack(ctx context.Context, dir, dest string) error {
	b, err := openFolder(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()                  // b was only read
	if err := atomicfile.SweepFor(dest); err != nil { // a killed run leaves a part of an archive, which is large
		return err
	}
	f, err := atomicfile.New(dest, 0o644)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := b.pack(ctx, f); err != nil {
		return err
	}
	return f.Commit()
}

// pack writes the small files first, so that a reader knows which blobs follow, and then the blobs in the order of their digests.
func (b *Bundle) pack(ctx context.Context, w io.Writer) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }() // after an error; a second Close does nothing
	out := tar.NewWriter(z)
	for _, small := range []struct {
		name    string
		content []byte
	}{{layoutFile, []byte(layoutContent)}, {indexFile, b.raw}} {
		if err := writeHeader(out, small.name, int64(len(small.content))); err != nil {
			return err
		}
		if _, err := out.Write(small.content); err != nil {
			return err
		}
	}
	blobs := slices.Clone(b.uses.all())
	slices.SortFunc(blobs, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.Hex, b.Digest.Hex) })
	if err := b.writeBlobs(ctx, out, blobs); err != nil {
		return err
	}
	return errors.Join(out.Close(), z.Close())
}
