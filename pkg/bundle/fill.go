package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// defaultParallel is the default of Sources.Parallel.
const defaultParallel = 4

// Sources says what Fill puts into a bundle.
type Sources struct {
	// Images are references to pull from their registries.
	Images []string
	// Architecture of the images, which are for Linux. Empty means this machine's.
	Architecture string
	// Files are plain files, content by path (see the package comment for the paths).
	Files map[string][]byte
	// Charts are Helm charts: files, or oci://registry/path:version.
	Charts []string
	// Fetched are further charts.
	Fetched []Chart
	// Programs describes an image to make of programs on this machine.
	Programs *Programs
	// From, if not nil, is a bundle whose images are copied if they have the right architecture. Fill pulls the other images.
	From *Bundle
	// Mirrors replace registries: "registry.k8s.io" → "mirror.example.com/k8s". The image keeps its name.
	Mirrors map[string]string
	// Parallel bounds how many images are pulled at once. 0 means 4.
	Parallel int
}

// Fill adds everything in s to w. It pulls images from their registries with the credentials of docker or podman. It does not pull blobs
// again that an interrupted Fill has left in the folder. If one image fails, Fill tries the others until ctx ends, and returns all errors,
// each with its image. The caller must close w, or discard it after an error.
func Fill(ctx context.Context, w *Writer, s Sources, r progress.Reporter) error {
	for _, path := range sortedFiles(s.Files) {
		if err := w.addFile(ctx, path, s.Files[path]); err != nil {
			return err
		}
	}
	if len(s.Charts) > 0 {
		step := r.Start("add charts")
		if err := w.addCharts(ctx, s.Charts, step.Detail); err != nil {
			step.Fail(err)
			return err
		}
		step.Done()
	}
	for _, c := range s.Fetched {
		if err := w.addFile(ctx, c.Path, c.Archive); err != nil {
			return err
		}
	}
	if s.Programs != nil {
		step := r.Start("add programs")
		if err := w.addPrograms(ctx, s.Programs, s.architecture()); err != nil {
			step.Fail(err)
			return err
		}
		step.Done()
	}
	refs, err := fullReferences(s.Images)
	if err != nil || len(refs) == 0 {
		return err
	}
	step := r.Start("pull images")
	if err := w.pullAll(ctx, refs, s, step); err != nil {
		step.Fail(err)
		return err
	}
	step.Done()
	return nil
}

func (s Sources) architecture() string { return cmp.Or(s.Architecture, runtime.GOARCH) }

// fits tells whether an image is for a platform. An image without a platform fits every platform.
func fits(got *v1.Platform, platform v1.Platform) bool {
	return got == nil || got.Architecture == "" || got.OS == platform.OS && got.Architecture == platform.Architecture
}

// has returns the bundle's image for a platform, or nil. b may be nil.
func (b *Bundle) has(ref string, platform v1.Platform) *image {
	if b == nil {
		return nil
	}
	found, ok := b.find(ref)
	if !ok || !fits(found.descriptor.Platform, platform) {
		return nil
	}
	return &found
}

// copyFrom adds an image of another bundle, and verifies its blobs.
func (w *Writer) copyFrom(ctx context.Context, from *Bundle, ref string, i image) error {
	op := "copy image " + ref
	for _, d := range i.blobs() {
		if err := w.ensure(ctx, d, func() (io.ReadCloser, error) { return from.blobs.open(d) }); err != nil {
			return diag.Wrap(op, err, "")
		}
	}
	var index []byte
	if text := i.descriptor.Annotations[host.AnnotationIndex]; text != "" {
		index = []byte(text)
	}
	return diag.Wrap(op, w.recordImage(ref, i.descriptor, index), "")
}

// mirrored returns the reference from which to pull an image: in the registry itself, or in its mirror.
func mirrored(ref name.Reference, mirrors map[string]string) (name.Reference, error) {
	registry := ref.Context().RegistryStr()
	if registry == name.DefaultRegistry { // users write docker.io
		registry = "docker.io"
	}
	mirror, ok := mirrors[registry]
	if !ok {
		return ref, nil
	}
	separator := ":"
	if _, digested := ref.(name.Digest); digested {
		separator = "@"
	}
	return name.ParseReference(mirror + "/" + ref.Context().RepositoryStr() + separator + ref.Identifier())
}

func sortedFiles(files map[string][]byte) []string {
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// fullReferences returns the full form of each reference, once each, in order. The error joins one error for each invalid reference.
func fullReferences(refs []string) ([]string, error) {
	var full []string
	var problems []error
	seen := map[string]bool{}
	for _, ref := range refs {
		f, err := FullReference(ref)
		switch {
		case err != nil:
			problems = append(problems, err)
		case !seen[f]:
			seen[f] = true
			full = append(full, f)
		}
	}
	return full, errors.Join(problems...)
}

func (w *Writer) pullAll(ctx context.Context, refs []string, s Sources, step progress.Step) error {
	platform := v1.Platform{OS: "linux", Architecture: s.architecture()}
	var mu sync.Mutex
	begun := 0
	problems := make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(parallel(s.Parallel))
	for i, ref := range refs {
		group.Go(func() error {
			if ctx.Err() == nil {
				mu.Lock()
				begun++
				step.Detail(fmt.Sprintf("%d of %d: %s", begun, len(refs), ref))
				mu.Unlock()
				if there := s.From.has(ref, platform); there != nil {
					problems[i] = w.copyFrom(ctx, s.From, ref, *there)
				} else {
					problems[i] = w.pull(ctx, ref, s.Mirrors, platform)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // no task returns an error
	if err := ctx.Err(); err != nil {
		return diag.Wrap("pull images", err, "run it again: pulled content is kept")
	}
	return errors.Join(problems...)
}

func parallel(n int) int {
	if n <= 0 {
		return defaultParallel
	}
	return n
}

// pull adds one image. It always gets the manifest, because tags move, and gets only missing blobs.
func (w *Writer) pull(ctx context.Context, ref string, mirrors map[string]string, platform v1.Platform) error {
	op := "pull image " + ref
	parsed, err := name.ParseReference(ref)
	if err == nil {
		parsed, err = mirrored(parsed, mirrors)
	}
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	found, err := remote.Get(parsed, append(asking(ctx, parsed.Context()), remote.WithPlatform(platform))...)
	if err != nil {
		return diag.Wrap(op, quotable(err), pullHint(parsed, err))
	}
	img, err := found.Image()
	if err != nil {
		return diag.Wrap(op, quotable(err), pullHint(parsed, err))
	}
	d, err := w.storeImage(ctx, img)
	if err != nil {
		return diag.Wrap(op, quotable(err), pullHint(parsed, err))
	}
	// An image without an index has only one platform, whatever platform was requested.
	if got := d.Platform; !fits(got, platform) {
		return diag.Wrap(op, fmt.Errorf("the image is for %s/%s, not for %s", got.OS, got.Architecture, platform), "")
	}
	var index []byte
	if found.MediaType.IsIndex() { // the bundle needs the index to know the registry's digest without a network
		index = found.Manifest
	}
	return diag.Wrap(op, w.recordImage(ref, d, index), "")
}

// pullHint returns the hint for an error of a registry.
func pullHint(ref name.Reference, err error) string {
	refused := (*transport.Error)(nil)
	if !errors.As(err, &refused) {
		return ""
	}
	registry := ref.Context().RegistryStr()
	switch refused.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("log in with `docker login %s` or `podman login %s`, and check that the account may pull it",
			registry, registry)
	case http.StatusNotFound:
		return "check the version in fleet.yaml: the registry has no such image"
	case http.StatusTooManyRequests:
		return fmt.Sprintf("the registry limits pulls: log in to %s, or run it again later; pulled content is kept", registry)
	}
	if refused.StatusCode >= http.StatusInternalServerError {
		return fmt.Sprintf("the registry %s, or a proxy before it, has a problem: run it again later; pulled content is kept", registry)
	}
	return "run it again: pulled content is kept"
}
