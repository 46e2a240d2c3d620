package engine

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestDockerSocket(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "engine.sock")
	t.Setenv("DOCKER_HOST", "unix://"+sock)
	e := &Engine{name: Docker}
	var socketErr *SocketError
	if _, err := e.Socket(t.Context()); !errors.As(err, &socketErr) || socketErr.Path != sock || diag.Hint(err) == "" {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/_ping" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, "OK")
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if got, err := e.Socket(t.Context()); err != nil || got != sock {
		t.Errorf("got %q, %v", got, err)
	}
	t.Setenv("DOCKER_HOST", "tcp://elsewhere:2376")
	if _, err := e.Socket(t.Context()); !errors.As(err, &socketErr) {
		t.Errorf("remote: %v", err)
	}
	if _, err := (&Engine{name: Nerdctl}).Socket(t.Context()); !errors.As(err, &socketErr) || socketErr.Engine != Nerdctl {
		t.Errorf("nerdctl: %v", err)
	}
}
