package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ErrNotFound matches the error for an image or file that the bundle lacks.
var ErrNotFound = errors.New("not in the bundle")

// Kind of an Entry.
type Kind string

// The kinds of entries.
const (
	KindImage Kind = "image"
	KindFile  Kind = "file"
	KindChart Kind = "chart" // a file below charts/
)

// Entry describes an image or file in a bundle.
type Entry struct {
	Kind Kind `json:"kind"`
	// Name is an image's full reference, or a file's path.
	Name string `json:"name"`
	// Digest of the image's manifest, or of the file's content ("sha256:…").
	Digest string `json:"digest"`
	// Size in bytes. The size of an image includes all its blobs.
	Size int64 `json:"size"`
	// Platform on which the image runs ("linux/amd64"); empty for a file.
	Platform string `json:"platform,omitempty"`
}

// Bundle is an open bundle. Its methods can be called by several goroutines at once.
type Bundle struct {
	root   *os.Root
	blobs  store
	raw    []byte // index.json
	images map[string]image
	files  map[string]v1.Descriptor
	uses   *uses
	// problems are errors of manifests that could not be read. Open returns no bundle with problems.
	problems []error
	cleanup  func() error
}

// image is an image as the index and its manifest describe it.
type image struct {
	descriptor v1.Descriptor
	manifest   *v1.Manifest
}

// blobs returns the blobs of the image in their order in an archive.
func (i image) blobs() []v1.Descriptor {
	return append([]v1.Descriptor{i.descriptor, i.manifest.Config}, i.manifest.Layers...)
}

// Open opens the bundle at path, a folder or a .tar.zst. In a folder it verifies the manifests; later reads verify the other content. It
// unpacks an archive to the folder of WithCache, or else to a temporary folder that Close removes, and verifies all of it. The error joins
// all problems: a *CorruptError for each missing or wrong blob, and a *RefusedError for an archive with entries that no bundle has.
func Open(ctx context.Context, path string, opts ...Option) (*Bundle, error) {
	b, err := open(ctx, path, newOptions(opts))
	return b, cannotOpen(path, err)
}

// CheckThere returns an error if there is no bundle at path. It does not open the bundle. It is for commands that may not need the bundle's
// content.
func CheckThere(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		_, err = os.Stat(filepath.Join(path, indexFile))
	}
	return cannotOpen(path, err)
}

// cannotOpen adds the path to an error of Open, and a hint if there is no bundle at the path.
func cannotOpen(path string, err error) error {
	hint := ""
	if errors.Is(err, fs.ErrNotExist) {
		hint = "give the path of a bundle that `fleetctl bundle create` has made: a folder, or a .tar.zst"
	}
	return diag.Wrap("open bundle "+path, err, hint)
}

func open(ctx context.Context, path string, o options) (*Bundle, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(ctx, path)
	case info.Mode().IsRegular():
		return openArchive(ctx, path, o)
	}
	return nil, errors.New("neither a folder nor a .tar.zst")
}

// openFolder reads index and manifests, and checks that every blob exists with its size. If a blob is missing, it verifies all others, so
// that one run reports all problems.
func openFolder(ctx context.Context, dir string) (_ *Bundle, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{
		root: root, blobs: store{root}, images: map[string]image{}, files: map[string]v1.Descriptor{}, uses: newUses(),
	}
	defer func() {
		if err != nil {
			_ = b.Close()
		}
	}()
	if err := b.load(); err != nil {
		return nil, err
	}
	for _, d := range b.uses.all() {
		if len(b.problems) > 0 || b.blobs.check(d) != nil {
			if err := b.verify(ctx); err != nil {
				return nil, err
			}
			break
		}
	}
	return b, nil
}

// Close releases the bundle, and removes the temporary folder of Open.
func (b *Bundle) Close() error {
	err := b.root.Close()
	if b.cleanup != nil {
		err = errors.Join(err, b.cleanup())
	}
	return err
}

// Images lists the images, sorted by name.
func (b *Bundle) Images() []Entry {
	entries := make([]Entry, 0, len(b.images))
	for ref, img := range b.images {
		entries = append(entries, img.entry(ref))
	}
	return sorted(entries)
}

func (i image) entry(ref string) Entry {
	e := Entry{Kind: KindImage, Name: ref, Digest: i.descriptor.Digest.String()}
	if p := i.descriptor.Platform; p != nil {
		e.Platform = p.String()
	}
	counted := map[v1.Hash]bool{}
	for _, d := range i.blobs() {
		if !counted[d.Digest] {
			counted[d.Digest] = true
			e.Size += d.Size
		}
	}
	return e
}

// Files lists the plain files, charts among them, sorted by name.
func (b *Bundle) Files() []Entry {
	entries := make([]Entry, 0, len(b.files))
	for p, d := range b.files {
		kind := KindFile
		if strings.HasPrefix(p, chartsDir+"/") {
			kind = KindChart
		}
		entries = append(entries, Entry{Kind: kind, Name: p, Digest: d.Digest.String(), Size: d.Size})
	}
	return sorted(entries)
}

// Index lists the images, then the files.
func (b *Bundle) Index() []Entry { return append(b.Images(), b.Files()...) }

func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// Image returns an image by any form of its reference. The error matches ErrNotFound if the bundle lacks the image.
func (b *Bundle) Image(ref string) (Entry, error) {
	full, err := FullReference(ref)
	if err != nil {
		return Entry{}, err
	}
	img, ok := b.find(full)
	if !ok {
		return Entry{}, notFound(KindImage, full)
	}
	return img.entry(full), nil
}

// ReadFile returns the verified content of the plain file at this path. The error matches ErrNotFound if the bundle lacks the file, and
// *CorruptError if its content is wrong.
func (b *Bundle) ReadFile(path string) ([]byte, error) {
	d, ok := b.files[path]
	if !ok {
		return nil, notFound(KindFile, path)
	}
	content, err := b.blobs.read(d)
	return content, b.corrupt(d, err)
}

func notFound(kind Kind, name string) error {
	return diag.Errorf("run fleetctl bundle list to see its content", "%s %s: %w", kind, name, ErrNotFound)
}

// WriteFiles writes the plain files at or below prefix to dir, under their whole paths. An empty prefix means all files. It makes a missing
// dir with access for this user only. It verifies all files before it writes the first one, and writes each atomically. It follows no link
// out of dir and replaces no file, because a bundle chooses the names of its files, and dir may be the user's working folder. The error
// matches ErrNotFound if there are no such files, and fs.ErrExist if dir has other files of these names.
func (b *Bundle) WriteFiles(ctx context.Context, dir, prefix string) error {
	paths := b.below(prefix)
	if len(paths) == 0 {
		return notFound(KindFile, prefix)
	}
	size := int64(0)
	for _, d := range b.descriptors(paths) {
		if size += d.Size; size > maxWritten {
			return fmt.Errorf("the files below %q are larger than %d bytes together", prefix, maxWritten)
		}
	}
	if err := b.verifyBlobs(ctx, b.descriptors(paths)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	missing, err := b.notThere(root, paths)
	if err != nil {
		return err
	}
	for _, p := range missing {
		if err := b.writeFile(ctx, root, p); err != nil {
			return diag.Wrap("write "+filepath.Join(dir, filepath.FromSlash(p)), err, "")
		}
	}
	return nil
}

// notThere returns the paths that root lacks. It fails if root has a file with other content at one of the paths.
func (b *Bundle) notThere(root *os.Root, paths []string) (missing []string, err error) {
	var taken []error
	for _, p := range paths {
		switch same, err := isThere(root, p, b.files[p]); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, p)
		case err != nil:
			return nil, err
		case !same:
			taken = append(taken, diag.Errorf("give a new folder, or move these files away", "%q: %w, with other content", p, fs.ErrExist))
		}
	}
	return missing, told(taken)
}

// isThere tells whether the file at p has the content that d describes.
func isThere(root *os.Root, p string, d v1.Descriptor) (bool, error) {
	info, err := root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() != d.Size {
		return false, err
	}
	f, err := within.Open(root, p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, io.LimitReader(f, d.Size+1)) // the file may have grown
	return hex.EncodeToString(sum.Sum(nil)) == d.Digest.Hex, err
}

func (b *Bundle) below(prefix string) []string {
	var paths []string
	for _, e := range b.Files() {
		if Below(e.Name, prefix) {
			paths = append(paths, e.Name)
		}
	}
	return paths
}

// Below tells whether the file at path is at or below prefix, which is empty or names a file or folder of a bundle.
func Below(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
}

func (b *Bundle) descriptors(paths []string) []v1.Descriptor {
	ds := make([]v1.Descriptor, 0, len(paths))
	for _, p := range paths {
		ds = append(ds, b.files[p])
	}
	return ds
}

func (b *Bundle) writeFile(ctx context.Context, root *os.Root, p string) (err error) {
	if err := root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	partial := path.Join(path.Dir(p), "."+path.Base(p)+".partial")
	if err := root.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(partial)
		}
	}()
	if err := errors.Join(b.copyBlob(ctx, f, b.files[p]), f.Close()); err != nil {
		return err
	}
	return root.Rename(partial, p)
}

// copyBlob is store.copyTo with errors that name the image or file of the blob.
func (b *Bundle) copyBlob(ctx context.Context, w io.Writer, d v1.Descriptor) error {
	if err := b.blobs.copyTo(ctx, w, d); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return b.corrupt(d, err)
	}
	return nil
}
