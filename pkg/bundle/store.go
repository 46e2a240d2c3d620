package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// partialDir holds incomplete files. It is not part of the bundle, and Writer removes it.
const partialDir = ".partial"

// copyBuffer is large because layers are large: a large buffer saves system calls.
const copyBuffer = 1 << 20

// store has the blobs of one layout. It opens files through an os.Root, so that no link in a hostile folder leads out.
type store struct{ root *os.Root }

// check returns an error if the blob is missing or has another size. It does not read the blob.
func (s store) check(d v1.Descriptor) error {
	p := blobPath(d.Digest)
	// Look before opening: a pipe or device in place of a blob would block or never end.
	info, err := s.root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errMissing
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", p)
	case info.Size() != d.Size:
		return fmt.Errorf("size is %d, not %d", info.Size(), d.Size)
	}
	return nil
}

// open returns a reader that verifies the blob. If the size or the digest differs from the descriptor, the reader fails before it returns
// the last bytes.
func (s store) open(d v1.Descriptor) (io.ReadCloser, error) {
	if err := s.check(d); err != nil {
		return nil, err
	}
	f, err := within.Open(s.root, blobPath(d.Digest))
	if err != nil {
		return nil, err
	}
	return &verifyingReader{ReadCloser: f, want: d.Digest, left: d.Size, hash: sha256.New()}, nil
}

// verify reads the whole blob and returns an error if its content is wrong.
func (s store) verify(ctx context.Context, d v1.Descriptor) error {
	return s.copyTo(ctx, io.Discard, d)
}

// copyTo writes the blob's content to w. If the content differs from d, it fails before it writes the last bytes.
func (s store) copyTo(ctx context.Context, w io.Writer, d v1.Descriptor) error {
	r, err := s.open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	return copyTo(ctx, w, r)
}

// read returns the content of a small blob.
func (s store) read(d v1.Descriptor) ([]byte, error) {
	r, err := s.open(d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// put stores content as the blob that d describes. The blob appears under its digest complete and verified, or not at all. Do not call it
// twice at once for the same digest.
func (s store) put(ctx context.Context, d v1.Descriptor, content io.ReadCloser) (err error) {
	defer content.Close()
	partial := partialDir + "/" + d.Digest.Hex
	f, err := s.root.OpenFile(partial, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = s.root.Remove(partial)
		}
	}()
	if err := copyTo(ctx, f, &verifyingReader{ReadCloser: content, want: d.Digest, left: d.Size, hash: sha256.New()}); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return s.root.Rename(partial, blobPath(d.Digest))
}

// errMissing is the reason of a CorruptError for a blob that the index names but the bundle lacks.
var errMissing = errors.New("missing")

// verifyingReader returns exactly left bytes with the wanted digest. Otherwise it fails before it returns the last byte.
type verifyingReader struct {
	io.ReadCloser
	want v1.Hash
	left int64
	hash hash.Hash
	err  error
}

// Read implements io.Reader.
func (v *verifyingReader) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.ReadCloser.Read(p)
	v.left -= int64(n)
	v.hash.Write(p[:n])
	switch {
	case v.left < 0:
		v.err = errors.New("content is longer than its descriptor says")
	case err == io.EOF && v.left > 0:
		v.err = io.ErrUnexpectedEOF
	case err != nil && err != io.EOF:
		v.err = err
	case v.left == 0:
		v.err = v.finish()
	}
	if v.err != nil && v.err != io.EOF { //nolint:errorlint // set above, never wrapped
		return 0, v.err
	}
	return n, nil
}

// finish checks the digest, and that no bytes follow. It returns io.EOF on success.
func (v *verifyingReader) finish() error {
	if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.want.Hex {
		return fmt.Errorf("content has digest sha256:%s", got)
	}
	if n, err := io.ReadFull(v.ReadCloser, make([]byte, 1)); n > 0 {
		return errors.New("content is longer than its descriptor says")
	} else if err != io.EOF {
		return err
	}
	return io.EOF
}

// copyTo copies all of r to w and stops when ctx ends.
func copyTo(ctx context.Context, w io.Writer, r io.Reader) error {
	// The wrappers hide ReadFrom and WriteTo, with which io.CopyBuffer would use neither buffer nor context.
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, contextReader{ctx, r}, make([]byte, copyBuffer))
	return err
}

// contextReader fails with the context's error after the context has ended.
type contextReader struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// describe returns the descriptor of content.
func describe(content []byte) v1.Descriptor {
	sum := sha256.Sum256(content)
	return v1.Descriptor{
		Size:   int64(len(content)),
		Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
	}
}
