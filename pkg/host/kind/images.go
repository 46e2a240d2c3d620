package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// LoadImages loads the images that the node lacks. A nil archive has no images.
func (h *Host) LoadImages(ctx context.Context, images host.ImageArchive, detail func(string)) error {
	if images == nil {
		return nil
	}
	missing, err := h.missing(ctx, images)
	if err != nil || len(missing) == 0 {
		return err
	}
	if detail != nil {
		detail("loading " + plain.Count(len(missing), "image"))
	}
	return h.importImages(ctx, images, missing)
}

// loadEarly loads the images as soon as the node's containerd answers, which is long before the control plane is ready.
func (h *Host) loadEarly(ctx context.Context, created <-chan struct{}, opts host.CreateOptions) error {
	if opts.Images == nil {
		return nil
	}
	if err := h.awaitInNode(ctx, created, "ctr version >/dev/null 2>&1"); err != nil {
		return err
	}
	return host.LoadWanted(ctx, h, opts)
}

// awaitInNode returns when a shell condition is true in the node. kind does not report when it has made the container, and the engines'
// event streams differ. So awaitInNode looks for the container again and again, and then waits in it. It gives up if created is closed
// and there is still no container.
func (h *Host) awaitInNode(ctx context.Context, created <-chan struct{}, condition string) error {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for last := false; ; {
		_, err := h.exec(ctx, "until "+condition+"; do sleep 0.1; done")
		if err == nil {
			return nil
		}
		if last || ctx.Err() != nil {
			return fmt.Errorf("wait for node %s: %w", h.controlPlane(), err)
		}
		select {
		case <-tick.C:
		case <-created:
			last = true // look once more: now the container must exist
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// missing names the archive's images that the node lacks, or whose name means another image there.
func (h *Host) missing(ctx context.Context, images host.ImageArchive) ([]string, error) {
	out, err := h.exec(ctx, "ctr --namespace=k8s.io images ls")
	if err != nil {
		return nil, fmt.Errorf("list the images in node %s: %w", h.controlPlane(), err)
	}
	has := listed(out)
	digest := func(string) string { return "" }
	if known, ok := images.(host.Digests); ok {
		digest = known.Digest
	}
	var missing []string
	for _, ref := range images.Names() {
		there, found := has[engine.FullReference(ref)]
		if !found {
			there, found = has[ref]
		}
		if wanted := digest(ref); !found || (wanted != "" && wanted != there) {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

// listed parses the table of `ctr images ls`: a heading, and lines REF TYPE DIGEST SIZE…
func listed(table string) (digests map[string]string) {
	digests = map[string]string{}
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 2 {
			digests[columns[0]] = columns[2]
		}
	}
	return digests
}

// importScript imports an archive from its standard input into the node's store. kind does the same, but without --local. That option
// avoids ctr's transfer service (containerd 2), which takes twice the time. The snapshotter must be the kubelet's: on some file systems
// it differs from ctr's default.
const importScript = `
snapshotter=$(containerd config dump 2>/dev/null | awk -F"[\"']" '
	/^ *\[/ { section = $0 }
	/^ *snapshotter = / && $2 != "" && (section ~ /cri\.v1\.images/ || section ~ /grpc\.v1\.cri.*containerd/) { print $2; exit }')
set -- --snapshotter="${snapshotter:-overlayfs}"
if ctr images import --help | grep -q -- --local; then
	set -- --local "$@"
fi
exec ctr --namespace=k8s.io images import "$@" -`

// importImages streams an archive into the node's store, without a file on this machine. It uses one stream, because several are not
// faster.
func (h *Host) importImages(ctx context.Context, images host.ImageArchive, refs []string) error {
	err := pipe(ctx,
		func(w io.Writer) error { return images.WriteArchive(ctx, w, refs...) },
		func(r io.Reader) error {
			return h.engine.Run(ctx, r, nil, "exec", "--privileged", "--interactive", h.controlPlane(), "sh", "-c", importScript)
		})
	return diag.Wrap("load images into node "+h.controlPlane(), err, "")
}

// pipe connects a writer with a reader and returns the original error: a writer's error explains a reader that fails at the cut-off
// stream, and a reader's error explains a writer's broken pipe.
func pipe(ctx context.Context, write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		_ = w.CloseWithError(err) // nil is end of file
		written <- err
	}()
	readErr := read(r)
	_ = r.CloseWithError(errReaderGone)
	writeErr := <-written
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case writeErr != nil && !errors.Is(writeErr, errReaderGone):
		return writeErr
	case readErr != nil:
		return readErr
	}
	return writeErr
}

// errReaderGone is the error of a writer whose reader has stopped.
var errReaderGone = errors.New("the reader has stopped")
