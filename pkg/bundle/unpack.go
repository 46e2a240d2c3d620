package bundle

import (
	"archive/tar"
	"bytes"
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
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// maxWindow bounds the memory, in bytes, for decompressing an archive. `zstd --long` stays within it.
const maxWindow = 128 << 20

// zstdMagic starts every zstd frame.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// RefusedError says that an archive was not unpacked, because of one of its entries or as a whole. No file of the archive remains.
type RefusedError struct {
	// Entry is the entry's name in the archive. It is empty if Reason is about the archive as a whole.
	Entry string
	// Reason says what is wrong with the entry or archive.
	Reason string
}

// Error quotes the entry's name, because the name may contain any bytes.
func (e *RefusedError) Error() string {
	if e.Entry == "" {
		return "archive refused: " + e.Reason
	}
	return fmt.Sprintf("archive refused because of its entry %q: %s", e.Entry, e.Reason)
}

// openArchive unpacks the archive to the folder that the options choose, and opens it.
func openArchive(ctx context.Context, file string, o options) (*Bundle, error) {
	f, err := within.OpenNamed(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, len(zstdMagic))
	if _, err := io.ReadFull(f, magic); err != nil || !bytes.Equal(magic, zstdMagic) {
		return nil, errors.New("neither a folder nor a .tar.zst")
	}
	if o.cache != "" {
		return openCached(ctx, f, o)
	}
	dir, remove, err := atomicfile.TempFolder("", "bundle")
	if err != nil {
		return nil, err
	}
	if err := unpackVerified(ctx, f, dir, o.limits); err != nil {
		return nil, errors.Join(err, remove())
	}
	b, err := openFolder(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	b.cleanup = remove
	return b, nil
}

// openCached unpacks to a folder named by the archive's digest, unless an earlier run has done so. A lock ensures that only one of several
// concurrent runs unpacks.
func openCached(ctx context.Context, f *os.File, o options) (*Bundle, error) {
	digest, err := digestOf(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.cache, 0o755); err != nil {
		return nil, err
	}
	dir := filepath.Join(o.cache, "sha256-"+digest)
	lock := flock.New(dir + ".lock")
	// This polls, because a context cannot end a blocking wait for a file lock.
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return nil, fmt.Errorf("wait for another process that unpacks the same archive: %w", err)
	}
	defer func() { _ = lock.Unlock() }()

	if b, err := openFolder(ctx, dir); err == nil {
		return b, nil
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if system := syscall.Errno(0); errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // a folder that cannot be read may still be complete
	}
	// The folder is missing or damaged: unpack the archive.
	partial := dir + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.RemoveAll(dir), os.Mkdir(partial, 0o755)); err != nil {
		return nil, err
	}
	if err := unpackVerified(ctx, f, partial, o.limits); err != nil {
		return nil, errors.Join(err, os.RemoveAll(partial))
	}
	if err := errors.Join(atomicfile.SyncTree(partial), os.Rename(partial, dir)); err != nil {
		return nil, err
	}
	return openFolder(ctx, dir)
}

func digestOf(ctx context.Context, f io.ReadSeeker) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if err := copyTo(ctx, h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unpackVerified unpacks f to the empty folder dir and verifies every digest in it.
func unpackVerified(ctx context.Context, f *os.File, dir string, limits Limits) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := unpack(ctx, f, limits.Entries, limits.budget(info.Size()), dir); err != nil {
		return err
	}
	b, err := openFolder(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(b.verify(ctx), b.Close())
}

// unpack writes the files of the .tar.zst r to the empty folder dir. It accepts only entries that a bundle has, so that no name or link can
// lead out of dir.
func unpack(ctx context.Context, r io.Reader, entries int, budget int64, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(blobsDir, 0o755); err != nil {
		return err
	}
	z, err := zstd.NewReader(contextReader{ctx, r}, zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	// The budget includes headers and padding, because an archive may be large without content.
	bounded := &budgetReader{r: z, left: budget}
	u := unpacker{root: root, in: tar.NewReader(bounded), entries: entries, budget: budget, seen: map[string]bool{}}
	for {
		switch done, err := u.next(ctx); {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case done:
			// The checksum of the compressed stream comes after the end of the archive.
			return u.wrap(copyTo(ctx, io.Discard, bounded))
		}
	}
}

// unpacker is one run of unpack.
type unpacker struct {
	root    *os.Root
	in      *tar.Reader
	entries int
	budget  int64
	seen    map[string]bool
	last    string
}

// next unpacks one entry. done is true at the end of the archive.
func (u *unpacker) next(ctx context.Context) (done bool, err error) {
	h, err := u.in.Next()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, u.wrap(err)
	}
	u.last = h.Name
	if u.entries--; u.entries < 0 {
		return false, &RefusedError{h.Name, "the archive has too many entries"}
	}
	name := path.Clean(h.Name)
	if reason := u.refuse(h, name); reason != "" {
		return false, &RefusedError{h.Name, reason}
	}
	if h.Typeflag == tar.TypeDir {
		return false, nil
	}
	u.seen[name] = true
	u.budget -= h.Size
	return false, u.write(ctx, name)
}

// wrap adds the place in the archive to a read error.
func (u *unpacker) wrap(err error) error {
	if err == nil {
		return nil
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return &RefusedError{u.last, refused.Reason}
	}
	where := "at the start of the archive"
	if u.last != "" {
		where = fmt.Sprintf("at entry %q or after it", u.last)
	}
	return diag.Errorf("the archive is damaged or incomplete: copy it again from its source", "%s: %w", where, err)
}

// blobName matches the path of a blob.
var blobName = regexp.MustCompile(`^` + blobsDir + `/[0-9a-f]{64}$`)

// refuse returns the reason to refuse an entry, or "". It accepts only the listed forms.
func (u *unpacker) refuse(h *tar.Header, name string) string {
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "." || name == blobsDir || name == path.Dir(blobsDir) {
			return ""
		}
	case tar.TypeReg:
		if name == layoutFile || name == indexFile || blobName.MatchString(name) {
			break
		}
		if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
			return "it would be written outside of the bundle"
		}
		return "a bundle has no such file"
	default:
		return "it is neither a file nor a folder"
	}
	switch {
	case h.Typeflag == tar.TypeDir:
		return "a bundle has no such folder"
	case u.seen[name]:
		return "the archive has it twice"
	case h.Size > u.budget:
		return errBudget.Reason
	}
	return ""
}

func (u *unpacker) write(ctx context.Context, name string) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// Distinguish read errors, which are about the archive, from write errors.
	in := &failReader{r: u.in}
	err = errors.Join(copyTo(ctx, f, in), f.Close())
	if in.err != nil {
		return u.wrap(in.err)
	}
	return err
}

// failReader keeps the error of its source.
type failReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (f *failReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// errBudget is returned when an archive unpacks to more than its limits allow.
var errBudget = &RefusedError{Reason: "the archive unpacks to more than its size allows"}

// budgetReader fails with errBudget after it has read left bytes.
type budgetReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errBudget
	}
	return n, err
}
