//go:build e2e && clouds

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/egress"
	imagestore "github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/runner"
)

// imageDir is the store that the hosts of all fleetctl of these tests share.
func imageDir() string { return filepath.Join(cache, "images") }

// registry is what the machines of a simulated cloud pull images from: the images of the bundle, unpacked.
func registry(t *testing.T) *imagestore.Store {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // what runs Deployments would complain that nobody has
	b, err := bundle.Open(t.Context(), os.Getenv(envBundle))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	store, err := imagestore.Open(imageDir(), imagestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	archive := b.Archive()
	if err := store.Load(t.Context(), archive, archive.Names()...); err != nil {
		t.Fatal(err)
	}
	return store
}

// pods stand for the kubelets of a cluster, its scheduler and its network: they run its Deployments as processes, as an embedded host does,
// and lead its API servers to what listens behind Services.
type pods struct {
	dir   string
	store *imagestore.Store
	proxy *egress.Proxy

	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	runner *runner.Runner
	failed error
}

const egressSocket = "egress.sock"

// newPods begins with the way to Services, which the first API server needs.
func newPods(ctx context.Context, dir string, store *imagestore.Store) (*pods, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pods{dir: dir, store: store}
	config, err := egress.Config(p.path(egressSocket))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.egressConfig(), config, 0o600); err != nil {
		return nil, err
	}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) // until end
	if p.proxy, err = egress.Listen(ctx, p.path(egressSocket), p.resolve, nil); err != nil {
		p.cancel()
		return nil, err
	}
	p.all.Go(func() { p.note(p.proxy.Serve(ctx)) })
	return p, nil
}

func (p *pods) path(name string) string { return filepath.Join(p.dir, name) }

// egressConfig is the file that tells an API server of the way.
func (p *pods) egressConfig() string { return p.path("egress.yaml") }

// run runs the Deployments of the cluster at config, an administrator's connection, until end.
func (p *pods) run(ctx context.Context, config *rest.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runner != nil {
		return nil
	}
	r, err := runner.New(config, p.store, runner.Options{Dir: p.path("runner"), HelpDir: filepath.Join(imageDir(), "help")})
	if err != nil {
		return err
	}
	p.runner = r
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	before := p.cancel
	p.cancel = func() { stop(); before() }
	p.all.Go(func() { p.note(r.Run(ctx)) })
	return nil
}

// resolve finds what an API server asks for: a machine's kubelet, or the process behind a Service.
func (p *pods) resolve(ctx context.Context, host, port string) (string, error) {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return net.JoinHostPort(host, port), nil
	}
	p.mu.Lock()
	r := p.runner
	p.mu.Unlock()
	if r == nil {
		return "", errors.New("no machine runs pods yet")
	}
	return r.Resolve(ctx, host, port)
}

func (p *pods) note(err error) {
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "    booter: pods: %v\n", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = errors.Join(p.failed, err)
}

// end ends all processes, and tells what went wrong.
func (p *pods) end() error {
	p.mu.Lock()
	cancel := p.cancel
	p.mu.Unlock()
	cancel()
	p.all.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
