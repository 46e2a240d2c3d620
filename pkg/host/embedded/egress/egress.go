// Package egress connects the API server to the webhooks and aggregated API servers of a cluster without a pod network. The API
// server dials every Service through an HTTP CONNECT proxy on a Unix socket (EgressSelectorConfiguration, type cluster). The proxy
// asks a Resolver where the Service's process listens. Webhook configurations stay as they are, because the proxy only moves bytes:
// TLS is between the API server and the webhook.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// Resolver finds the process behind a Service. host is the Service's cluster IP or DNS name. The result is an address for net.Dial
// with "tcp". The user whose request needed the webhook reads the error.
type Resolver func(ctx context.Context, host, port string) (address string, err error)

// dialTime bounds resolving and dialling. It equals the API server's default timeout for a webhook.
const dialTime = 10 * time.Second

// Proxy serves CONNECT on a Unix socket.
type Proxy struct {
	// Dial, if set before Serve, replaces net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	resolve  Resolver
	listener net.Listener
	folder   *os.File // keeps a long path short, see listen
	server   *http.Server
	log      func(format string, args ...any)

	mu      sync.Mutex
	tunnels map[net.Conn]struct{}
	closed  bool
}

// Listen makes the socket, with access for this user alone. It replaces a socket that a killed process left. log, if not nil, is
// called for each Service that could not be reached. The caller has to call Serve next.
func Listen(ctx context.Context, socket string, resolve Resolver, log func(format string, args ...any)) (*Proxy, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	p := &Proxy{Dial: (&net.Dialer{}).DialContext, resolve: resolve, log: log, tunnels: map[net.Conn]struct{}{}}
	if err := p.listen(ctx, socket); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: dialTime}
	return p, nil
}

// maxSocketPath is the longest path of a Unix socket in bytes. Linux takes 107 and macOS 103.
const maxSocketPath = 100

func (p *Proxy) listen(ctx context.Context, socket string) (err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	path := socket
	if len(path) > maxSocketPath {
		// /proc/self/fd has a short link to the open folder, and the kernel follows it.
		if p.folder, err = os.Open(filepath.Dir(socket)); err != nil {
			return err
		}
		path = fmt.Sprintf("/proc/self/fd/%d/%s", p.folder.Fd(), filepath.Base(socket))
	}
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "unix", path); err == nil {
		err = os.Chmod(socket, 0o600)
	}
	return err
}

// Serve answers until ctx ends, and then closes every tunnel. It returns nil if ctx has ended it.
func (p *Proxy) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, p.close)()
	err := p.server.Serve(p.listener)
	p.close()
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (p *Proxy) close() {
	_ = p.server.Close() // leaves hijacked connections open; p.close closes them
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close()
	}
	if p.folder != nil {
		_ = p.folder.Close()
		p.folder = nil
	}
}

// connect answers one CONNECT.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this socket takes CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTime)
	defer cancel()
	backend, err := p.dial(ctx, r.RequestURI)
	client, buffered, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil {
		if backend != nil {
			_ = backend.Close()
		}
		http.Error(w, hijackErr.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = client.Close() }()
	if err != nil {
		p.log("%s: %v", r.RequestURI, err)
		refuse(client, err)
		return
	}
	defer func() { _ = backend.Close() }()
	if !p.keep(client, backend) {
		return
	}
	defer p.forget(client, backend)
	// This answer must have no body in any version of HTTP. The API server would take a body for the webhook's first bytes.
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	tunnel(client, buffered, backend)
}

func (p *Proxy) dial(ctx context.Context, target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	address, err := p.resolve(ctx, host, port)
	if err != nil {
		return nil, err
	}
	return p.Dial(ctx, "tcp", address)
}

// refuse puts the reason into the status line, because the API server shows its user no other part of the answer.
func refuse(w io.Writer, err error) {
	reason := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
	_, _ = fmt.Fprintf(w, "HTTP/1.1 502 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", reason) // the API server may have given up
}

// keep records open connections for close. It returns false once the proxy is closed.
func (p *Proxy) keep(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for _, c := range connections {
		p.tunnels[c] = struct{}{}
	}
	return true
}

func (p *Proxy) forget(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		delete(p.tunnels, c)
	}
}

// tunnel moves bytes both ways until either side closes. early holds the bytes that came with the request; the backend gets them first.
func tunnel(client net.Conn, early io.Reader, backend net.Conn) {
	var group sync.WaitGroup
	move := func(to net.Conn, from io.Reader) {
		_, _ = io.Copy(to, from) // an end with an error is an end
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
			return
		}
		_ = to.Close()
	}
	group.Go(func() { move(backend, early) })
	group.Go(func() { move(client, backend) })
	group.Wait()
}

// Config returns the EgressSelectorConfiguration, as JSON, that sends the API server's dials to Services to socket. A relative socket
// is relative to the API server's working folder, which keeps its path short. Other dials, such as a webhook with a URL, stay direct.
func Config(socket string) ([]byte, error) {
	type object = map[string]any
	return yaml.Marshal(object{
		"apiVersion": "apiserver.k8s.io/v1beta1",
		"kind":       "EgressSelectorConfiguration",
		"egressSelections": []object{{
			"name": "cluster",
			"connection": object{
				"proxyProtocol": "HTTPConnect",
				"transport":     object{"uds": object{"udsName": socket}},
			},
		}},
	})
}
