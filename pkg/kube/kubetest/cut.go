package kubetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Cut stands between a command and an API server, and ends the command at a write of the test's choice, as a kill does: after that write,
// nothing of the command arrives any more, also not what it would tidy up.
type Cut struct {
	upstream   http.Handler
	kubeconfig []byte

	mu      sync.Mutex
	writes  int
	at      int
	applied bool
	dead    bool
	end     context.CancelFunc
}

// NewCut returns a Cut before the API server of an administrator's kubeconfig.
func NewCut(t *testing.T, kubeconfig []byte) *Cut {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cut{upstream: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	server := httptest.NewServer(c)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	c.kubeconfig = []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server.URL + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	return c
}

// Kubeconfig is the way to the API server through the Cut.
func (c *Cut) Kubeconfig() []byte { return c.kubeconfig }

// Begin returns a client and a context for a command that ends at its n-th write, which reaches the API server if applied is true. 0 lets
// all pass.
func (c *Cut) Begin(ctx context.Context, t *testing.T, n int, applied bool) (context.Context, *kube.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	c.mu.Lock()
	c.writes, c.at, c.applied, c.dead, c.end = 0, n, applied, false, cancel
	c.mu.Unlock()
	client, err := kube.New(c.kubeconfig, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, client
}

// Writes returns how many writes the command has sent, and whether it was ended.
func (c *Cut) Writes() (n int, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes, c.dead
}

// ServeHTTP implements http.Handler.
func (c *Cut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	write := r.Method != http.MethodGet && r.Method != http.MethodHead && !r.URL.Query().Has("dryRun")
	passes, end := c.note(write)
	switch {
	case passes && end == nil:
		c.upstream.ServeHTTP(w, r)
		return
	case passes:
		c.upstream.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
	}
	if end != nil {
		end()
	}
	panic(http.ErrAbortHandler)
}

// note counts a request. end, if not nil, ends the command that has sent it: a test may have begun the next one before the request is
// answered.
func (c *Cut) note(write bool) (passes bool, end context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false, nil
	}
	if !write {
		return true, nil
	}
	if c.writes++; c.writes != c.at {
		return true, nil
	}
	c.dead = true
	return c.applied, c.end
}
