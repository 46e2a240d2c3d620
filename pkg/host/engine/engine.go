// Package engine talks to the container engine of this machine through its command line: Docker, Podman, nerdctl or
// Finch. It knows what a host and the preflight need of an engine and that kind keeps to itself.
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
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Name of an engine, as KIND_EXPERIMENTAL_PROVIDER spells it.
type Name string

// The engines that can carry a kind cluster.
const (
	Docker  Name = "docker"
	Podman  Name = "podman"
	Nerdctl Name = "nerdctl"
	Finch   Name = "finch"
)

// ProviderVariable is the environment variable with which kind, and so we, are told which engine to use.
const ProviderVariable = "KIND_EXPERIMENTAL_PROVIDER"

// Engine is one container engine that answered. Its zero value is not usable: see Detect.
type Engine struct {
	name Name
}

// Name of the engine; it is also the name of its program.
func (e *Engine) Name() Name { return e.name }

// NotFoundError says that no container engine answers, and why each candidate did not.
type NotFoundError struct {
	// Tried maps each engine that is installed to what it answered.
	Tried map[Name]error
}

// Error names the engines that are installed and what is wrong with them.
func (e *NotFoundError) Error() string {
	if len(e.Tried) == 0 {
		return "no container engine is installed (docker, podman or nerdctl)"
	}
	var parts []string
	for _, name := range candidates {
		if err := e.Tried[name]; err != nil {
			parts = append(parts, err.Error())
		}
	}
	return "no container engine answers: " + strings.Join(parts, "; ")
}

// candidates in the order in which kind tries them.
var candidates = []Name{Docker, Nerdctl, Finch, Podman}

// Detect returns the engine that the environment variable KIND_EXPERIMENTAL_PROVIDER names, else the first that answers.
// Other than kind's own detection it is not content with a program in the PATH: a Docker client without its daemon does
// not hide a Podman that works. The error is a *NotFoundError with a hint when nothing answers.
func Detect(ctx context.Context) (*Engine, error) {
	names, err := wanted(os.Getenv(ProviderVariable))
	if err != nil {
		return nil, err
	}
	tried := map[Name]error{}
	for _, name := range names {
		if _, err := exec.LookPath(string(name)); err != nil {
			continue
		}
		e := &Engine{name: name}
		err := e.answers(ctx)
		if err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		tried[name] = err
	}
	return nil, diag.Wrap("", &NotFoundError{Tried: tried}, startHint(tried))
}

// wanted translates the value of KIND_EXPERIMENTAL_PROVIDER to the engines to try.
func wanted(value string) ([]Name, error) {
	if value == "" {
		return candidates, nil
	}
	for _, name := range candidates {
		if string(name) == value {
			return []Name{name}, nil
		}
	}
	return nil, diag.Usage("unset it, or set it to docker, podman, nerdctl or finch",
		"environment variable %s: unknown engine %q", ProviderVariable, value)
}

// answers asks the engine itself, not just its client.
func (e *Engine) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if e.name == Docker {
		// podman-docker installs a "docker" that is Podman: then Podman is to be called by its own name.
		out, err := e.Output(ctx, "--version")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(out, "Docker version") {
			return fmt.Errorf("docker on the PATH is not Docker but %q", firstLine(out))
		}
	}
	_, err := e.Info(ctx)
	return err
}

func startHint(tried map[Name]error) string {
	switch {
	case errors.Is(tried[Docker], os.ErrPermission):
		return `you may not use Docker's socket: run "sudo usermod -aG docker $USER" and log in again`
	case tried[Docker] != nil:
		return `start Docker ("sudo systemctl start docker", or Docker Desktop), or install Podman`
	case tried[Podman] != nil:
		return `see "podman info" for what is wrong; on macOS and Windows run "podman machine start"`
	}
	return "install Docker (https://docs.docker.com/engine/install) or Podman (https://podman.io/docs/installation)"
}

// CommandError is a call of the engine's program that failed.
type CommandError struct {
	// Args are the program and its arguments.
	Args []string
	// Stderr is what it said.
	Stderr string
	// Err is how it ended.
	Err error
}

// Error has the command and the last line that it wrote to its standard error.
func (e *CommandError) Error() string {
	verb := strings.Join(e.Args[:min(len(e.Args), 3)], " ")
	if line := lastLine(e.Stderr); line != "" {
		return fmt.Sprintf("%s: %v: %s", verb, e.Err, line)
	}
	return fmt.Sprintf("%s: %v", verb, e.Err)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *CommandError) Unwrap() error { return e.Err }

// Output runs the engine's program and returns its standard output without surrounding space. The error is a
// *CommandError, or that of the context.
func (e *Engine) Output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := e.Run(ctx, nil, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// Run runs the engine's program with stdin (may be nil) and stdout (may be nil). The error is a *CommandError, or that
// of the context when it ended the command.
func (e *Engine) Run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, string(e.name), args...) //nolint:gosec // the program is one of the four names above
	var stderr tailBuffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	// A grandchild that keeps the pipes open must not hold us after the context ended.
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &CommandError{Args: cmd.Args, Stderr: stderr.String(), Err: err}
	}
	return nil
}

// tailBuffer keeps the last of what is written to it: enough to tell what went wrong, whatever the program says.
type tailBuffer struct{ data []byte }

const tailSize = 8 << 10

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if over := len(b.data) - tailSize; over > 0 {
		b.data = append(b.data[:0], b.data[over:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string { return strings.TrimSpace(string(b.data)) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
