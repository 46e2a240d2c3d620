package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/within"
)

// packedRefs is the file of git's with the references that have no file of their own.
const packedRefs = "packed-refs"

// DropTag removes a tag of a commit from this repository only. A tag of that name on another commit stays, and one that is not there is no
// error.
func (r *Repo) DropTag(ctx context.Context, name, commit string) error {
	err := r.drop(ctx, plumbing.NewTagReferenceName(name), func(at plumbing.Hash) (bool, error) {
		there, err := r.readTag(name, at)
		return there != nil && there.Commit == commit, err
	})
	if err != nil {
		return fmt.Errorf("remove the tag %s: %w", name, err)
	}
	return nil
}

// drop removes a reference if which says so of its value.
func (r *Repo) drop(ctx context.Context, ref plumbing.ReferenceName, which func(at plumbing.Hash) (bool, error)) (err error) {
	if err := ref.Validate(); err != nil {
		return err
	}
	// In this order, as git does: otherwise a git that removes the same tag and this one would wait for each other.
	release, err := r.disk.lock(ctx, r.disk.path(ref.String()), r.disk.path(packedRefs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	at, err := r.reference(ref)
	if err != nil || at.IsZero() {
		return err
	}
	if is, err := which(at); err != nil || !is {
		return err
	}
	all, err := r.settings(ctx)
	if err != nil {
		return err
	}
	t := transaction{[]plumbing.ReferenceName{ref}, at, plumbing.ZeroHash}
	return r.transact(ctx, all, t, func() error { //nolint:contextcheck // billy takes none
		// In this order, as git does: the file of a reference counts before its line.
		if err := r.unpack(ref); err != nil {
			return err
		}
		return ignoreMissing(os.Remove(r.disk.path(ref.String())))
	})
}

// unpack removes the line of a reference from the packed ones, with the line that tells the commit of an annotated tag. go-git leaves the
// latter, which git then takes for the commit of the reference before it.
func (r *Repo) unpack(ref plumbing.ReferenceName) (err error) {
	content, err := within.Named(r.disk.path(packedRefs), int64(maxRefs))
	if err != nil {
		return ignoreMissing(err)
	}
	var keep strings.Builder
	dropped := false
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "^") {
			_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			dropped = !strings.HasPrefix(line, "#") && name == ref.String()
		}
		if !dropped {
			keep.WriteString(line)
		}
	}
	if keep.Len() == len(content) {
		return nil
	}
	f, err := r.disk.Create(packedRefs)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(keep.String()))
	return errors.Join(err, f.Close())
}
