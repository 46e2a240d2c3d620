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

// ImageRef spells a reference as the engine wants it: Podman takes no short names, and no tag beside a digest.
func (e *Engine) ImageRef(ref string) string {
	if e.name != Podman {
		return ref
	}
	return FullReference(ref)
}

// FullReference spells out registry and tag, as engines and nodes name what they store; beside a digest it drops the tag.
// What is not a reference is returned as it is: whoever is asked for it says so.
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
