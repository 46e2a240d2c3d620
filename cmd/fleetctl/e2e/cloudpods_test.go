//go:build e2e && clouds

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
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
	// environment is what a provider finds here as the machines of a real cloud find their cloud: by the network.
	environment map[string]string

	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	runner *runner.Runner
	failed error
}

const egressSocket = "egress.sock"

// newPods begins with the way to Services, which the first API server needs.
func newPods(ctx context.Context, dir string, store *imagestore.Store, environment map[string]string) (*pods, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pods{dir: dir, store: store, environment: environment}
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
	if len(p.environment) > 0 {
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		p.all.Go(func() { p.leadsToCloud(ctx, clients) })
	}
	return nil
}

// leadsToCloud gives the provider of AWS the environment, whenever there is one that lacks it.
func (p *pods) leadsToCloud(ctx context.Context, clients *kubernetes.Clientset) {
	var variables []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(p.environment)) {
		variables = append(variables, corev1.EnvVar{Name: name, Value: p.environment[name]})
	}
	deployments := clients.AppsV1().Deployments("capa-system")
	for ctx.Err() == nil {
		changes, err := deployments.Watch(ctx, metav1.ListOptions{})
		if err != nil { // the API server of the first machine starts, or ends
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for change := range changes.ResultChan() {
			d, ok := change.Object.(*appsv1.Deployment)
			if !ok || change.Type == apiwatch.Deleted || has(d.Spec.Template.Spec.Containers[0].Env, variables) {
				continue
			}
			patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": d.Spec.Template.Spec.Containers[0].Name, "env": variables}},
			}}}})
			if err == nil {
				_, err = deployments.Patch(ctx, d.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			}
			if err != nil && ctx.Err() == nil {
				p.note(fmt.Errorf("lead %s to its cloud: %w", d.Name, err))
			}
		}
	}
}

func has(all, wanted []corev1.EnvVar) bool {
	return !slices.ContainsFunc(wanted, func(v corev1.EnvVar) bool { return !slices.Contains(all, v) })
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
