package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

// Limits of one layer. They are about a hundred times what the image of a manager needs.
const (
	maxLayerBytes   = 8 << 30
	maxLayerEntries = 1 << 19
	maxZstdWindow   = 128 << 20
	// maxLayers is the most layers that an image may have. Container engines take fewer.
	maxLayers = 1_000
)

func hexOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (s *Store) hasLayer(digest v1.Hash) bool {
	_, err := os.Stat(s.path(layersDir, digest.Hex))
	return err == nil
}

// addLayer unpacks the layer that r delivers, compressed or not. The layer appears in the store only after all of r was read and had the
// given digest.
func (s *Store) addLayer(ctx context.Context, digest v1.Hash, r io.Reader) error {
	dir, err := os.MkdirTemp(s.path(tmpDir), "layer-")
	if err != nil {
		return err
	}
	hashed := &hashingReader{r: contextReader{ctx, r}, hash: sha256.New()}
	err = unpackLayer(hashed, dir)
	// The bytes after the end of the archive belong to the digest, too. A wrong digest explains all other errors of the layer, so it
	// replaces them.
	if _, drainErr := io.Copy(io.Discard, hashed); drainErr != nil {
		err = drainErr
	} else if got := hex.EncodeToString(hashed.hash.Sum(nil)); got != digest.Hex {
		err = fmt.Errorf("content has digest sha256:%s", got)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("layer %s: %w", digest, err), os.RemoveAll(dir))
	}
	return publish(dir, s.path(layersDir, digest.Hex))
}

// unpackLayer writes a layer's files to the empty folder dir.
func unpackLayer(r io.Reader, dir string) error {
	plain, err := decompress(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := unpacker{root: root, in: tar.NewReader(plain), left: maxLayerBytes, links: map[string]string{}}
	for range maxLayerEntries {
		switch done, err := u.next(); {
		case err != nil:
			return err
		case done:
			return nil
		}
	}
	return errors.New("it has too many entries")
}

// decompress recognises gzip and zstd by their first bytes. It passes other content on as it is.
func decompress(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 1<<20)
	start, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}

// unpacker is one run of unpackLayer.
type unpacker struct {
	root *os.Root
	in   *tar.Reader
	left int64
	// links are the targets of symbolic links, by the links' names, as the layer has them. On disk the targets are relative.
	links map[string]string
}

func (u *unpacker) next() (done bool, err error) {
	h, err := u.in.Next()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if err := u.entry(h); err != nil {
		return false, fmt.Errorf("entry %q: %w", h.Name, err)
	}
	return false, nil
}

// entry writes one entry. It leaves out owners, devices and special mode bits, which a process of this user cannot use.
func (u *unpacker) entry(h *tar.Header) error {
	name, err := inside(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	name, err = realName(u.root, name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return u.file(name, h)
	case tar.TypeSymlink:
		return u.link(name, h.Linkname)
	case tar.TypeLink:
		return u.hardLink(name, h.Linkname)
	}
	return nil
}

func (u *unpacker) file(name string, h *tar.Header) error {
	if u.left -= h.Size; u.left < 0 {
		return errors.New("the layer unpacks to more than is allowed")
	}
	if err := makeWay(u.root, name); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode(h.FileInfo().Mode()))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, u.in)
	return errors.Join(err, f.Close())
}

// fileMode is a mode that lets everybody read the file and nobody write it, because images share layers.
func fileMode(m fs.FileMode) fs.FileMode {
	if m&0o111 != 0 {
		return 0o555
	}
	return 0o444
}

func (u *unpacker) link(name, target string) error {
	if err := makeWay(u.root, name); err != nil {
		return err
	}
	u.links[name] = target
	return u.root.Symlink(relativeTarget(name, target), name)
}

func (u *unpacker) hardLink(name, target string) error {
	clean, err := inside(target)
	if err != nil {
		return fmt.Errorf("it links to %q: %w", target, err)
	}
	actual, err := realName(u.root, clean)
	if err != nil {
		return err
	}
	info, err := u.root.Lstat(actual)
	switch {
	case err != nil:
		return err
	case actual == name:
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		// A hard link to a symbolic link is a symbolic link at another place. Its relative target on disk fits only the first place, and
		// could lead out of the image at this one. So make the link anew from its original target.
		return u.link(name, u.links[actual])
	case !info.Mode().IsRegular():
		return errors.New("it links to something that is not a file")
	}
	if err := makeWay(u.root, name); err != nil {
		return err
	}
	return u.root.Link(actual, name)
}

// makeWay makes the parent folder of name, and removes a file or link at name. A folder there stays.
func makeWay(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	err := root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inside returns the clean name of an entry, or an error if it leads out of the image.
func inside(name string) (string, error) {
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0) {
		return "", errors.New("it leads out of the image")
	}
	return clean, nil
}

// hashingReader hashes the bytes that are read through it.
type hashingReader struct {
	r    io.Reader
	hash hash.Hash
}

// Read implements io.Reader.
func (h *hashingReader) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.hash.Write(p[:n])
	return n, err
}

// contextReader fails with the context's error after the context has ended.
type contextReader struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
