package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/egress"
)

// start runs a proxy on a socket until the test ends or the returned function is called.
func start(t *testing.T, socket string, resolve egress.Resolver) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, err := egress.Listen(ctx, socket, resolve, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()
	ended := false
	stop = func() {
		if cancel(); ended {
			return
		}
		ended = true
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// connect asks for a tunnel as the API server does, and returns it with the status line's end.
func connect(t *testing.T, socket, target string) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, "127.0.0.1")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil) //nolint:bodyclose // what follows is the tunnel
	if err != nil {
		t.Fatal(err)
	}
	if n := in.Buffered(); n > 0 {
		t.Errorf("%d bytes follow the answer, which the API server refuses", n)
	}
	return conn, res.Status
}

const granted = "200 OK"

// echo is a server that sends back its input, and closes when the client has finished.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

func TestTunnelLeadsWhereTheResolverSays(t *testing.T) {
	backend := echo(t)
	socket := filepath.Join(t.TempDir(), "s")
	var asked atomic.Value
	start(t, socket, func(_ context.Context, host, port string) (string, error) {
		asked.Store(host + " " + port)
		return backend, nil
	})
	conn, status := connect(t, socket, "10.96.0.12:443")
	if status != granted {
		t.Fatal(status)
	}
	if got := asked.Load(); got != "10.96.0.12 443" {
		t.Errorf("asked for %v", got)
	}
	big := strings.Repeat("0123456789", 100_000)
	go func() {
		_, _ = io.WriteString(conn, big) // what comes back tells
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	if got, err := io.ReadAll(conn); err != nil || string(got) != big {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

func TestReasonIsInTheStatusLine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	start(t, socket, func(context.Context, string, string) (string, error) {
		return "", errors.New("no process serves capi-webhook-service:\r\nit crashes")
	})
	_, status := connect(t, socket, "10.96.0.12:443")
	if status != "502 no process serves capi-webhook-service:  it crashes" {
		t.Errorf("got %q", status)
	}
	res, err := (&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}).Get("http://x/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", res.Status)
	}
}

func TestDeadBackend(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	socket := filepath.Join(t.TempDir(), "s")
	start(t, socket, func(context.Context, string, string) (string, error) { return dead, nil })
	if _, status := connect(t, socket, "10.96.0.12:443"); !strings.HasPrefix(status, "502 ") || !strings.Contains(status, "refused") {
		t.Errorf("got %q", status)
	}
}

func TestEndClosesTunnelsAndSocket(t *testing.T) {
	backend := echo(t)
	socket := filepath.Join(t.TempDir(), "s")
	stop := start(t, socket, func(context.Context, string, string) (string, error) { return backend, nil })
	conn, _ := connect(t, socket, "10.96.0.12:443")
	stop()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the tunnel is open: %v", err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket still answers")
	}
}

func TestSocketIsPrivateReplacesALeftOverAndMayHaveALongPath(t *testing.T) {
	backend := echo(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "egress.sock")
	if err := os.WriteFile(socket, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, socket, func(context.Context, string, string) (string, error) { return backend, nil })
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	t.Chdir(dir) // as the API server runs
	if _, status := connect(t, "egress.sock", "10.96.0.12:443"); status != granted {
		t.Errorf("got %q", status)
	}
}

func TestConfig(t *testing.T) {
	got, err := egress.Config("egress.sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: cluster", "proxyProtocol: HTTPConnect", "udsName: egress.sock", "kind: EgressSelectorConfiguration"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
