package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/distribution/reference"
)

// HasImage tells whether the engine's store has the image. A reference with a digest is matched by its digest.
func (e *Engine) HasImage(ctx context.Context, ref string) (bool, error) {
	_, err := e.Output(ctx, "image", "inspect", "--format", "{{.Id}}", e.ImageRef(ref))
	if err == nil {
		return true, nil
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return false, nil
	}
	return false, fmt.Errorf("look for image %s: %w", ref, err)
}

// ImageRef returns the reference in the form that the engine accepts. Podman accepts no short names, and no tag beside a digest.
func (e *Engine) ImageRef(ref string) string {
	if e.name != Podman {
		return ref
	}
	return FullReference(ref)
}

// FullReference adds the default registry and tag to a reference, as engines and nodes do. It drops a tag beside a digest. It returns an
// invalid reference as it is, for the engine to refuse.
func FullReference(ref string) string {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return ref
	}
	return named.String()
}

// LoadImages loads an archive of images (OCI layout or docker archive) into the engine's store.
func (e *Engine) LoadImages(ctx context.Context, archive io.Reader) error {
	if err := e.Run(ctx, archive, nil, "load"); err != nil {
		return fmt.Errorf("load images into %s: %w", e.name, err)
	}
	return nil
}
