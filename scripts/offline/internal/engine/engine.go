// Package engine talks to the container engine of this machine through its own program.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// providerVariable is what tells kind which engine to use; it decides here, too.
const providerVariable = "KIND_EXPERIMENTAL_PROVIDER"

// Engine is a container engine that answers.
type Engine struct{ program string }

// Name is the engine's program.
func (e Engine) Name() string { return e.program }

// Find returns the engine that kind would use: the one that the user chose, else Docker, else Podman.
func Find(ctx context.Context) (Engine, error) {
	candidates := []string{"docker", "podman"}
	if chosen := os.Getenv(providerVariable); chosen != "" {
		candidates = []string{chosen}
	}
	for _, program := range candidates {
		if exec.CommandContext(ctx, program, "info").Run() == nil {
			return Engine{program}, nil
		}
	}
	return Engine{}, fmt.Errorf("no engine answers (tried %s): start one, or run setup-engine.sh for Podman", strings.Join(candidates, ", "))
}

// Has says whether the engine has exactly this image under the reference.
func (e Engine) Has(ctx context.Context, ref string, img v1.Image) (bool, error) {
	config, err := img.ConfigName()
	if err != nil {
		return false, err
	}
	out, err := exec.CommandContext(ctx, e.program, "image", "inspect", "--format", "{{.Id}}", ref).Output()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return false, ctx.Err()
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "sha256:") == config.Hex, err
}

// Load gives the engine the archive that write writes.
func (e Engine) Load(ctx context.Context, write func(io.Writer) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err)
		written <- err
	}()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, e.program, "load")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &output, &output
	err := cmd.Run()
	r.CloseWithError(errors.New("the engine has stopped reading"))
	if failed := <-written; failed != nil && err == nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("%s load: %w\n%s", e.program, err, strings.TrimSpace(output.String()))
	}
	return nil
}
