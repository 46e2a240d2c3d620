package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// shelfType is the media type of the only layer of an artifact on a Shelf.
const shelfType = types.MediaType("application/vnd.fleetctl.snapshot.v1+age")

// Shelf keeps files in a repository of an OCI registry. Each file is an artifact with its own tag. The credentials are those of docker or
// podman.
type Shelf struct{ repository name.Repository }

// NewShelf returns the shelf in a repository, given as REGISTRY/PATH. It does not connect.
func NewShelf(repository string) (*Shelf, error) {
	parsed, err := name.NewRepository(repository)
	if err != nil {
		return nil, diag.Usage("give a repository without a tag: oci://registry.example.com/fleet/snapshots",
			"%.200q is not a repository of a registry", repository)
	}
	return &Shelf{parsed}, nil
}

// String returns the repository in the form oci://REGISTRY/PATH.
func (s *Shelf) String() string { return "oci://" + s.repository.Name() }

func (s *Shelf) options(ctx context.Context) []remote.Option { return asking(ctx, s.repository) }

// fail wraps an error of the registry. It adds a hint if the registry does not answer, or if its status tells what to do.
func (s *Shelf) fail(verb string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	refused, ok := errors.AsType[*transport.Error](err)
	switch {
	case !ok && diag.Hint(err) == "" && notReached(err): // a web page has its own hint
		hint = "check the address, your connection and the proxy settings (HTTPS_PROXY, NO_PROXY)"
	case !ok && diag.Hint(err) == "": // an answer that ends, or stops, in the middle, or that is not what its digest says
		hint = "run the same command again; if it fails again, find out what the registry, or a proxy before it, does with its answers"
	case !ok:
	case isStatus(err, http.StatusNotFound) && len(refused.Errors) == 0:
		hint = "check the address: no registry answers so"
	case isStatus(err, http.StatusNotFound):
		hint = "the registry has lost a part of it, or somebody removes it right now: run the same command again"
	case isStatus(err, http.StatusUnauthorized, http.StatusForbidden):
		hint = "log in with docker login or podman login: " + s.repository.RegistryStr()
	case refused.StatusCode == http.StatusTooManyRequests:
		hint = "the registry limits requests: run the same command again in a few minutes"
	case refused.StatusCode >= http.StatusInternalServerError:
		hint = "the registry, or a proxy before it, has a problem: run the same command again later"
	}
	return diag.Wrap(verb+" "+s.String(), quotable(err), hint)
}

// notReached tells whether a request failed before an answer that is one of a registry.
func notReached(err error) bool {
	_, is := errors.AsType[*url.Error](err)
	return is
}

func isStatus(err error, codes ...int) bool {
	refused, ok := errors.AsType[*transport.Error](err)
	return ok && slices.Contains(codes, refused.StatusCode)
}

// isAbsent tells whether the registry says that it has no such repository or tag. A 404 without a reason of the registry is that of another
// server, such as a proxy or a website: what the registry has is not known then.
func isAbsent(err error) bool {
	refused, ok := errors.AsType[*transport.Error](err)
	return ok && refused.StatusCode == http.StatusNotFound && len(refused.Errors) > 0
}

// Names returns the sorted names of the files. It returns none if the registry says that the repository does not exist yet.
func (s *Shelf) Names(ctx context.Context) ([]string, error) {
	names, err := s.list(ctx)
	if isAbsent(err) {
		return nil, nil
	}
	slices.Sort(names)
	return names, s.fail("list", err)
}

// maxTagPages bounds the pages of a list of tags. Each page has at most maxManifest bytes. The bound is needed because the registry decides
// whether another page follows.
const maxTagPages = 100

// list asks for all tags, page by page.
func (s *Shelf) list(ctx context.Context) (names []string, err error) {
	bounded := remote.WithTransport(contact.Bound(roundTripper(s.repository), maxManifest))
	puller, err := remote.NewPuller(append(s.options(ctx), bounded)...)
	if err != nil {
		return nil, err
	}
	lister, err := puller.Lister(ctx, s.repository)
	if err != nil {
		return nil, err
	}
	for range maxTagPages {
		if !lister.HasNext() {
			return names, nil
		}
		page, err := lister.Next(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, page.Tags...)
	}
	if !lister.HasNext() {
		return names, nil
	}
	return nil, diag.Errorf("keep snapshots in a repository without other content",
		"its list of tags does not end after %d pages", maxTagPages)
}

// Read returns the content of a file. It fails if the file has more than most bytes. The error matches fs.ErrNotExist if there is no such
// file.
func (s *Shelf) Read(ctx context.Context, file string, most int64) ([]byte, error) {
	image, err := remote.Image(s.repository.Tag(file), s.options(ctx)...)
	if isAbsent(err) {
		return nil, fmt.Errorf("%s has no %s: %w", s, file, fs.ErrNotExist)
	}
	if err != nil {
		return nil, s.fail("read "+file+" in", err)
	}
	layers, err := image.Layers()
	if err == nil && len(layers) != 1 {
		err = diag.Errorf("find out who put it there", "it is not a snapshot: it has %s", plain.Count(len(layers), "layer"))
	}
	if err != nil {
		return nil, s.fail("read "+file+" in", err)
	}
	reader, err := layers[0].Compressed() // as stored: the media type has no compression
	if err != nil {
		return nil, s.fail("read "+file+" in", err)
	}
	content, err := io.ReadAll(io.LimitReader(reader, most+1))
	err = errors.Join(err, reader.Close())
	if err == nil && int64(len(content)) > most {
		err = diag.Errorf("find out who put it there", "it has more than %d MiB", most>>20)
	}
	return content, s.fail("read "+file+" in", err)
}

// Write puts a file on the shelf, completely or not at all.
func (s *Shelf) Write(ctx context.Context, file string, content []byte) error {
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, shelfType), types.OCIManifestSchema1)
	image, err := mutate.AppendLayers(image, static.NewLayer(content, shelfType))
	if err == nil {
		err = remote.Write(s.repository.Tag(file), image, s.options(ctx)...)
	}
	return s.fail("write "+file+" to", err)
}

// Delete removes a file. It fails if the registry does not allow that. A missing file is no error.
func (s *Shelf) Delete(ctx context.Context, file string) error {
	tag := s.repository.Tag(file)
	found, err := remote.Head(tag, s.options(ctx)...)
	if err == nil {
		err = remote.Delete(s.repository.Digest(found.Digest.String()), s.options(ctx)...)
		if isStatus(err, http.StatusNotFound) { // a run was killed before it deleted the tag, too
			err = nil
		}
	}
	if err == nil { // most registries delete a manifest's tags with it, but some keep them
		if _, left := remote.Head(tag, s.options(ctx)...); left == nil {
			err = remote.Delete(tag, s.options(ctx)...)
		}
	}
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return s.fail("delete "+file+" in", err)
}
