package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// defaultDockerSocket is Docker's default socket. Docker Desktop offers it to containers under the same path.
const defaultDockerSocket = "/var/run/docker.sock"

// SocketError means that a container cannot use the engine's API socket.
type SocketError struct {
	Engine Name
	Path   string
	Err    error
}

// Error names the engine, the socket and the cause.
func (e *SocketError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s has no API socket: %v", e.Engine, e.Err)
	}
	return fmt.Sprintf("the API socket of %s at %s: %v", e.Engine, e.Path, e.Err)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *SocketError) Unwrap() error { return e.Err }

// Socket returns the path of the engine's Docker-compatible API socket, on the engine's machine, after the API has answered there. The
// error is a *SocketError with a hint. Where the service does not run, the hint is the command that starts it.
func (e *Engine) Socket(ctx context.Context) (string, error) {
	switch e.name {
	case Docker:
		return e.dockerSocket(ctx)
	case Podman:
		return e.podmanSocket(ctx)
	case Nerdctl, Finch:
	}
	return "", diag.Wrap("", &SocketError{Engine: e.name, Err: errors.New("it does not speak Docker's API")},
		"the docker infrastructure provider needs Docker or Podman; set "+ProviderVariable+" to one of them")
}

func (e *Engine) dockerSocket(ctx context.Context) (string, error) {
	host, err := e.dockerHost(ctx)
	if err != nil {
		return "", err
	}
	path, isUnix := strings.CutPrefix(host, "unix://")
	if !isUnix {
		return "", diag.Wrap("", &SocketError{Engine: e.name, Path: host, Err: errors.New("not a Unix socket")},
			"the docker infrastructure provider works with a local Docker only")
	}
	if runtime.GOOS != "linux" || strings.Contains(path, "/.docker/desktop/") {
		// The socket of Docker Desktop is outside its virtual machine. Containers find it under Docker's default path.
		return defaultDockerSocket, nil
	}
	if err := ping(ctx, path); err != nil {
		return "", diag.Wrap("", &SocketError{Engine: e.name, Path: path, Err: err}, startHint(map[Name]error{Docker: err}))
	}
	return path, nil
}

// dockerHost is the value of DOCKER_HOST, or else the endpoint of the client's current context.
func (e *Engine) dockerHost(ctx context.Context) (string, error) {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return host, nil
	}
	return e.Output(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
}

func (e *Engine) podmanSocket(ctx context.Context) (string, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return "", err
	}
	if info.Remote || runtime.GOOS != "linux" {
		return info.Socket, nil // in the virtual machine, where the service always runs
	}
	if err := ping(ctx, info.Socket); err != nil {
		return "", diag.Wrap("", &SocketError{Engine: e.name, Path: info.Socket, Err: err}, podmanServiceHint(info))
	}
	return info.Socket, nil
}

// podmanServiceHint is the command that starts Podman's API service on this machine.
func podmanServiceHint(info Info) string {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return fmt.Sprintf(`start Podman's API service: "podman system service --time=0 unix://%s &"`, info.Socket)
	}
	if info.Rootless {
		return `start Podman's API service: "systemctl --user enable --now podman.socket"`
	}
	return `start Podman's API service: "sudo systemctl enable --now podman.socket"`
}

// ping returns nil if the API behind a Unix socket answers.
func ping(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ping answered %s", resp.Status)
	}
	return nil
}

// socketPermission returns fs.ErrPermission if the engine does not answer because this user may not open its socket. Otherwise it returns
// nil.
func (e *Engine) socketPermission(ctx context.Context) error {
	if e.name != Docker {
		return nil
	}
	host, err := e.dockerHost(ctx)
	if err != nil {
		return nil //nolint:nilerr // this only looks for a better explanation
	}
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		if err := ping(ctx, path); errors.Is(err, fs.ErrPermission) {
			return &SocketError{Engine: e.name, Path: path, Err: err}
		}
	}
	return nil
}
