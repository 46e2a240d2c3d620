package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrTagExists says that a tag of that name exists on another object. fleetctl never moves a tag.
var ErrTagExists = errors.New("there is another tag of that name")

// Tag is a tag of a commit.
type Tag struct {
	Name string
	// Commit of the tag, as 40 hexadecimal digits.
	Commit string
	// Message of an annotated tag, without its signature.
	Message string
	// Signed says that the tag has a signature. `git verify-tag` tells whose it is, and whether it is valid.
	Signed bool
}

// Tags returns the tags of commits in this repository, by name. It leaves out tags of other objects.
func (r *Repo) Tags(ctx context.Context) ([]Tag, error) {
	refs, err := r.git.Tags()
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s: %w", r.dir, err)
	}
	var all []Tag
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := r.readTag(ref.Name().Short(), ref.Hash())
		if t != nil {
			all = append(all, *t)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the tags of %s: %w", r.dir, err)
	}
	slices.SortFunc(all, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// readTag reads the tag at hash; nil if it is not a tag of a commit.
func (r *Repo) readTag(name string, hash plumbing.Hash) (*Tag, error) {
	t, err := object.GetTag(r.git.Storer, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		if _, err := object.GetCommit(r.git.Storer, hash); err != nil {
			return nil, nil //nolint:nilerr,nilnil // a tag of a tree or a file
		}
		return &Tag{Name: name, Commit: hash.String()}, nil
	}
	if err != nil || t.TargetType != plumbing.CommitObject {
		return nil, err
	}
	message, signature := t.Message, t.PGPSignature
	if before, after, ok := strings.Cut(message, "-----BEGIN SSH SIGNATURE-----"); ok { // go-git knows those of PGP only
		message, signature = before, after
	}
	return &Tag{Name: name, Commit: t.Target.String(), Message: message, Signed: signature != ""}, nil
}

// Tag makes an annotated tag of a commit in this repository, and tells whether it did: the same tag may exist already. It signs the tag if
// git is configured to sign tags or commits. Errors match ErrTagExists if a tag of that name is on another commit, and ErrSigning.
func (r *Repo) Tag(ctx context.Context, name, commit, message string) (bool, error) {
	ref := plumbing.NewTagReferenceName(name)
	if err := ref.Validate(); err != nil {
		return false, diag.Usage("write it like v0.1.0", "%q cannot be the name of a tag", name)
	}
	target := plumbing.NewHash(commit)
	if at, err := r.reference(ref); err != nil || !at.IsZero() {
		if err != nil {
			return false, fmt.Errorf("read the tag %s: %w", name, err)
		}
		if there, err := r.readTag(name, at); err != nil || there == nil || there.Commit != commit {
			return false, diag.Errorf("choose another name: tags are never moved", "%w: %s", ErrTagExists, name)
		}
		return false, nil
	}
	all, err := r.settings(ctx)
	if err != nil {
		return false, diag.Wrap("tag "+name, err, "")
	}
	by, err := r.identity(ctx, all, Author{})
	if err != nil {
		return false, diag.Wrap("tag "+name, err, "")
	}
	tagger := by.committer
	s, err := newSigner(all, Author{tagger.Name, tagger.Email}, "tag.gpgsign", "tag.forcesignannotated", "commit.gpgsign")
	if err != nil {
		return false, diag.Wrap("tag "+name, err, "")
	}
	t := &object.Tag{
		Name: name, Tagger: tagger,
		Message: strings.TrimRight(message, "\n") + "\n", TargetType: plumbing.CommitObject, Target: target,
	}
	if t.PGPSignature, err = signObject(ctx, s, t); err != nil {
		return false, diag.Wrap("tag "+name, err, "")
	}
	o := r.git.Storer.NewEncodedObject()
	if err := t.Encode(o); err != nil {
		return false, fmt.Errorf("tag %s: %w", name, err)
	}
	hash, err := saveObject(r.git.Storer, o)
	if err != nil {
		return false, fmt.Errorf("tag %s: %w", name, err)
	}
	if err := r.newReference(ctx, ref, hash); err != nil {
		return false, fmt.Errorf("tag %s: %w", name, err)
	}
	return true, nil
}

// PushTag pushes a tag, never with force, and tells whether the remote lacked it. The remote must already have the commit. Errors match
// ErrTagExists if the remote has another tag of that name, ErrNoPushRight if the server refuses, or are those of Probe.
func (r *Repo) PushTag(ctx context.Context, auth Auth, name string) (bool, error) {
	const verb = "push a tag to"
	t, remote, err := r.remote(auth)
	if err == nil {
		err = t.checkAddresses()
	}
	if err != nil {
		return false, err
	}
	ref := plumbing.NewTagReferenceName(name)
	hash, err := r.reference(ref)
	if err != nil || hash.IsZero() {
		return false, fmt.Errorf("there is no tag %s in %s: %w", name, r.dir, errors.Join(err, plumbing.ErrReferenceNotFound))
	}
	session, refs, err := remote.pushTo().openReceive(ctx)
	if err != nil {
		return false, remote.fail(verb, err)
	}
	defer func() { _ = session.Close() }() // the answer has been read, or there is none
	switch at := refs.References[ref.String()]; {
	case at == hash:
		return false, nil
	case !at.IsZero():
		return false, remote.fail(verb, otherTag(name))
	}
	if err := r.verifyPush(ctx, t.remote, t.to.url, ref.String(), hash, ref, plumbing.ZeroHash); err != nil {
		return false, err
	}
	err = send(ctx, session, refs.Capabilities, r.git.Storer, update{name: ref, new: hash, objects: []plumbing.Hash{hash}})
	if no, ok := errors.AsType[*refused](err); ok {
		return false, remote.fail(verb, remote.pushTo().whyTagRefused(ctx, ref, hash, no))
	}
	return err == nil, remote.fail(verb, err)
}

// otherTag says that the remote has another tag of a name.
func otherTag(name string) error {
	return diag.Errorf("delete your tag and run the command again: git tag --delete "+diag.ShellWord(name), "%w: %s", ErrTagExists, name)
}

// whyTagRefused finds out whether the push of a tag lost a race or was refused. If the race brought the very same tag, as two runs in one
// clone do, that is no error.
func (r *remote) whyTagRefused(ctx context.Context, ref plumbing.ReferenceName, hash plumbing.Hash, no *refused) error {
	denied := fmt.Errorf("%w: the tag %s: %w", ErrNoPushRight, ref.Short(), no)
	session, err := r.upload(ctx)
	if err != nil {
		return denied
	}
	defer func() { _ = session.Close() }() // everything has been read
	refs, err := advertised(ctx, session)
	if err != nil {
		return denied
	}
	switch at := refs.References[ref.String()]; {
	case at == hash:
		return nil
	case !at.IsZero():
		return otherTag(ref.Short())
	case stale(no.reason):
		return diag.Errorf("run the command again", "another push of the tag %s is under way: %w", ref.Short(), no)
	}
	return denied
}

// Fetch fetches the checked out branch and all tags from the remote, and returns the commit of the remote branch; "" if it has none. The
// working tree and the local branches stay as they are. The error matches ErrTagExists if a local tag differs from the remote's.
func (r *Repo) Fetch(ctx context.Context, auth Auth) (string, error) {
	commit, _, err := r.FetchTags(ctx, auth)
	return commit, err
}

// FetchTags is Fetch, and returns the names of the remote's tags, too. A tag that is in this repository only is not among them.
func (r *Repo) FetchTags(ctx context.Context, auth Auth) (commit string, there map[string]bool, err error) {
	t, remote, err := r.remote(auth)
	if err != nil {
		return "", nil, err
	}
	known, head, err := r.fetchBranch(ctx, t, remote)
	if err != nil || known.IsZero() {
		return "", nil, err
	}
	haves, err := r.haves(ctx, t, head)
	if err != nil {
		return "", nil, err
	}
	if there, err = r.fetchTags(ctx, remote, haves); err != nil {
		return "", nil, remote.fail("fetch tags from", err)
	}
	return known.String(), there, nil
}

// FetchBranch is Fetch without the tags.
func (r *Repo) FetchBranch(ctx context.Context, auth Auth) (string, error) {
	t, remote, err := r.remote(auth)
	if err != nil {
		return "", err
	}
	known, _, err := r.fetchBranch(ctx, t, remote)
	if err != nil || known.IsZero() {
		return "", err
	}
	return known.String(), nil
}

// fetchBranch fetches the checked out branch. It returns the commit of the remote branch, and that of the local one.
func (r *Repo) fetchBranch(ctx context.Context, t *tracking, remote *remote) (known, head plumbing.Hash, err error) {
	if _, head, err = r.head(); err != nil {
		return known, head, err
	}
	known, err = r.fetch(ctx, t, remote, head)
	return known, head, err
}

// fetchTags fetches the tags that this repository lacks, and returns the names of all that the remote has.
func (r *Repo) fetchTags(ctx context.Context, remote *remote, haves []plumbing.Hash) (map[string]bool, error) {
	session, err := remote.upload(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }() // what counts has been read, or failed
	refs, err := advertised(ctx, session)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	lacking := map[plumbing.ReferenceName]plumbing.Hash{}
	var wants []plumbing.Hash
	for name, hash := range refs.References {
		ref := plumbing.ReferenceName(name)
		if !ref.IsTag() {
			continue
		}
		there[ref.Short()] = true
		at, err := r.reference(ref)
		switch {
		case err != nil:
			return nil, err
		case at == hash:
			continue
		case !at.IsZero():
			return nil, diag.Errorf("if your tag is wrong: git tag --delete "+diag.ShellWord(ref.Short()),
				"%w: your tag %s differs from the remote's", ErrTagExists, ref.Short())
		}
		lacking[ref] = hash
		if !r.has(hash) {
			wants = append(wants, hash)
		}
	}
	if len(wants) > 0 {
		if err := receive(ctx, r.git.Storer, session, refs.Capabilities, wants, haves); err != nil {
			return nil, err
		}
	}
	for ref, hash := range lacking {
		if err := r.newReference(ctx, ref, hash); err != nil {
			return nil, fmt.Errorf("write the tag %s: %w", ref.Short(), err)
		}
	}
	return there, nil
}
