package bundle

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// CorruptError says that a blob is missing, or that its content does not match its digest.
type CorruptError struct {
	// Blob is the blob's digest in the bundle.
	Blob string
	// Of are the images and files that need the blob ("image registry.k8s.io/pause:3.10", "file charts/a.tgz").
	Of []string
	// Err says what is wrong with the blob.
	Err error
}

// Error names the blob and at most three of Of.
func (e *CorruptError) Error() string {
	of := e.Of
	more := ""
	if len(of) > 3 {
		more = fmt.Sprintf(" and %d more", len(of)-3)
		of = of[:3]
	}
	return fmt.Sprintf("blob %s of %s%s: %v", e.Blob, strings.Join(of, ", "), more, e.Err)
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

// corrupt returns err as a CorruptError with a hint. It returns nil if err is nil.
func (b *Bundle) corrupt(d v1.Descriptor, err error) error {
	if err == nil {
		return nil
	}
	return diag.Wrap("", &CorruptError{Blob: d.Digest.String(), Of: b.uses.of(d), Err: err},
		"the bundle is damaged: copy it again from its source, or run fleetctl bundle create again")
}

// Verify recomputes every digest, several at once. The error joins a *CorruptError for each missing or wrong blob. It is nil if the bundle
// is complete.
func (b *Bundle) Verify(ctx context.Context) error {
	return diag.Wrap("verify bundle", b.verify(ctx), "")
}

func (b *Bundle) verify(ctx context.Context) error {
	// Skip manifests that could not be read: their errors in b.problems have more detail.
	told := map[string]bool{}
	for _, p := range b.problems {
		if c := (*CorruptError)(nil); errors.As(p, &c) {
			told[c.Blob] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(b.uses.all()), func(d v1.Descriptor) bool { return told[d.Digest.String()] })
	return errors.Join(errors.Join(b.problems...), b.verifyBlobs(ctx, rest))
}

func (b *Bundle) verifyBlobs(ctx context.Context, ds []v1.Descriptor) error {
	problems := make([]error, len(ds))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, d := range ds {
		group.Go(func() error {
			problems[i] = b.corrupt(d, b.blobs.verify(ctx, d))
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(problems...)
}

// uses has the names of the images and files that need each blob, in the order of the index.
type uses struct {
	names map[blobKey][]string
	order []v1.Descriptor
}

// blobKey includes the size. If two descriptors have the same digest and different sizes, one of them is wrong, and verification must find
// it.
type blobKey struct {
	digest v1.Hash
	size   int64
}

func newUses() *uses { return &uses{names: map[blobKey][]string{}} }

func (u *uses) add(d v1.Descriptor, name string) {
	k := blobKey{d.Digest, d.Size}
	names, known := u.names[k]
	if !known {
		u.order = append(u.order, d)
	}
	if len(names) == 0 || names[len(names)-1] != name {
		u.names[k] = append(names, name)
	}
}

func (u *uses) of(d v1.Descriptor) []string { return u.names[blobKey{d.Digest, d.Size}] }
func (u *uses) all() []v1.Descriptor        { return u.order }
