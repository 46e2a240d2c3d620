package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/command"
)

// containerdConfig starts only what an import needs: no CRI, nothing that touches the machine's own containers.
const containerdConfig = `version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri"]
[grpc]
  address = %q
[ttrpc]
  address = %q
`

// containerdStart bounds how long containerd may take to answer.
const containerdStart = 60 * time.Second

// importImages writes a tar archive of a node's /var/lib/containerd that holds the images. The node's own containerd
// makes it, so that the node finds its own format; images stay packed until a node needs them, which halves the size.
func (b Builder) importImages(ctx context.Context, images map[string]v1.Image, archive string) error {
	// A socket's path may have 108 bytes, and the cache may lie deep.
	state, err := os.MkdirTemp("", "containerd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	root := archive + ".root"
	defer os.RemoveAll(root)
	store := filepath.Join(root, "var/lib/containerd")
	if err := os.MkdirAll(store, 0o711); err != nil {
		return err
	}
	if err := b.withContainerd(ctx, store, state, func(address string) error {
		return b.load(ctx, address, images, filepath.Join(root, "bundle"))
	}); err != nil {
		return err
	}
	_, err = command.Command{Args: []string{
		"tar", "--create", "--numeric-owner", "--owner=0", "--group=0", "--sort=name", "--file", archive, "--directory", root, "./var",
	}}.Run(ctx)
	return err
}

// withContainerd runs do while a containerd of our own serves the store.
func (b Builder) withContainerd(ctx context.Context, store, state string, do func(address string) error) (err error) {
	address, config := filepath.Join(state, "c.sock"), filepath.Join(state, "config.toml")
	content := fmt.Sprintf(containerdConfig, store, filepath.Join(state, "run"), address, address+".ttrpc")
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Programs["containerd"], "--config", config)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		cancel(errors.Join(errors.New("containerd has ended"), cmd.Wait()))
		close(ended)
	}()
	defer func() {
		// It writes its database to the end only when it is asked to stop.
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
		<-ended
		if err != nil {
			err = fmt.Errorf("%w\ncontainerd said:\n%s", err, tail(log.Bytes()))
		}
	}()
	if err := b.await(ctx, address); err != nil {
		return err
	}
	return do(address)
}

func (b Builder) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, containerdStart)
	defer cancel()
	for {
		if _, err := (command.Command{Args: []string{b.Programs["ctr"], "--address", address, "version"}}).Run(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd does not answer: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// load streams the images into containerd. They are pinned: kubelet must not delete on a full disk what cannot be pulled
// again.
func (b Builder) load(ctx context.Context, address string, images map[string]v1.Image, temp string) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := WriteArchive(ctx, w, images, temp)
		w.CloseWithError(err)
		written <- err
	}()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Programs["ctr"], "--address", address, "--namespace", "k8s.io", "images", "import",
		"--local", "--label", "io.cri-containerd.pinned=pinned", "--all-platforms", "--no-unpack", "--digests", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &output, &output
	err := cmd.Run()
	r.CloseWithError(errors.New("the import has ended"))
	if failed := <-written; failed != nil && err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("import %d images: %w\n%s", len(images), err, tail(output.Bytes()))
	}
	return nil
}

// WriteArchive writes the images as one archive that engines and containerd import. It needs room for them in the folder
// temp, which it removes.
func WriteArchive(ctx context.Context, w io.Writer, images map[string]v1.Image, temp string) error {
	defer os.RemoveAll(temp)
	out, err := bundle.Create(temp)
	if err != nil {
		return err
	}
	defer out.Discard()
	for _, ref := range sortedRefs(images) {
		if err := out.AddImage(ref, images[ref]); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	in, err := bundle.Open(ctx, temp)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return in.Archive().WriteArchive(ctx, w)
}

func sortedRefs(images map[string]v1.Image) []string { return slices.Sorted(maps.Keys(images)) }

func tail(output []byte) []byte {
	const shown = 2000
	if len(output) > shown {
		output = output[len(output)-shown:]
	}
	return bytes.TrimSpace(output)
}
