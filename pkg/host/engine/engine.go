// Package engine calls the command line of this machine's container engine: Docker, Podman, nerdctl or Finch. It offers what hosts and the
// preflight need of an engine and kind does not export.
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

// Name of an engine, as in KIND_EXPERIMENTAL_PROVIDER.
type Name string

// The engines on which kind can make a cluster.
const (
	Docker  Name = "docker"
	Podman  Name = "podman"
	Nerdctl Name = "nerdctl"
	Finch   Name = "finch"
)

// ProviderVariable is kind's environment variable that chooses the engine. fleetctl follows it, too.
const ProviderVariable = "KIND_EXPERIMENTAL_PROVIDER"

// Engine is a container engine that answers. Detect makes one; the zero value is not usable.
type Engine struct {
	name Name
}

// Name of the engine; it is also the name of its program.
func (e *Engine) Name() Name { return e.name }

// NotFoundError means that no container engine answers.
type NotFoundError struct {
	// Tried maps each installed engine to its error.
	Tried map[Name]error
}

// Error names the installed engines and their errors.
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

// Detect returns the engine that the environment variable KIND_EXPERIMENTAL_PROVIDER names, or else the first one that answers. kind's own
// detection only looks for a program in PATH. Detect also asks the engine, so a Docker client without its daemon does not hide a working
// Podman. If no engine answers, the error is a *NotFoundError with a hint.
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

// wanted returns the engines to try for a value of KIND_EXPERIMENTAL_PROVIDER.
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

// answers returns nil if the engine itself answers, and not only its client.
func (e *Engine) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if e.name == Docker {
		// The package podman-docker installs Podman under the name docker. Then Detect has to find it as podman.
		out, err := e.Output(ctx, "--version")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(out, "Docker version") {
			return fmt.Errorf("the program docker in PATH is not Docker but %q", firstLine(out))
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

// CommandError is the error of a failed call of the engine's program.
type CommandError struct {
	// Args are the program and its arguments.
	Args []string
	// Stderr is the program's standard error.
	Stderr string
	// Err is the error of exec.
	Err error
}

// Error has the command and the last line of its standard error.
func (e *CommandError) Error() string {
	verb := strings.Join(e.Args[:min(len(e.Args), 3)], " ")
	if line := lastLine(e.Stderr); line != "" {
		return fmt.Sprintf("%s: %v: %s", verb, e.Err, line)
	}
	return fmt.Sprintf("%s: %v", verb, e.Err)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *CommandError) Unwrap() error { return e.Err }

// Output runs the engine's program and returns its standard output without surrounding space. The error is a *CommandError, or the
// context's.
func (e *Engine) Output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := e.Run(ctx, nil, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// Run runs the engine's program with stdin and stdout, which may be nil. The error is a *CommandError, or the context's if that ended the
// command.
func (e *Engine) Run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, string(e.name), args...) //nolint:gosec // the program is one of the four names above
	var stderr tailBuffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	// A grandchild may keep the pipes open. Do not wait for it long after the context's end.
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &CommandError{Args: cmd.Args, Stderr: stderr.String(), Err: err}
	}
	return nil
}

// tailBuffer keeps only the end of the written bytes, so that the program's output is bounded in memory.
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
