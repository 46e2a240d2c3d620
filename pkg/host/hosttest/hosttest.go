// Package hosttest has the conformance suite of package host. Each kind of host runs the whole suite.
package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// fleet is the identity that hosts are made for here.
const fleet = "0f6a5f0e-7d1c-4a9e-9b43-6f0f3c2f7a11"

// keptNamespace is what is made in a host to see whether it survives.
const keptNamespace = "hosttest-kept"

// Options are the parts of the contract that differ by kind of host.
type Options struct {
	// Create are the options of each Create.
	Create host.CreateOptions
	// Lasting means that fleetctl does not make the cluster: it exists before Create and after Delete, and Delete reports it as left over.
	Lasting bool
	// Patience bounds each call; 0 is five minutes.
	Patience time.Duration
}

// Run tests a host from its creation to its deletion. Unless the host is Lasting, no host of its name may exist before.
func Run(t *testing.T, h host.Host, o Options) {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = 5 * time.Minute
	}
	c := &contract{host: h, opts: o, name: h.Name()}
	for _, part := range []struct {
		name  string
		check func(*contract, *testing.T)
	}{
		{"what does not exist", (*contract).absent},
		{"made", (*contract).made},
		{"found", (*contract).found},
		{"abilities", (*contract).abilities},
		{"stopped and started", (*contract).stopped},
		{"deleted", (*contract).deleted},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.check(c, t) }) {
			return // the next parts need this one
		}
	}
}

type contract struct {
	host host.Host
	opts Options
	name string
}

func (c *contract) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), c.opts.Patience)
	t.Cleanup(cancel)
	return ctx
}

// wantState calls State twice, because State must not change anything.
func (c *contract) wantState(t *testing.T, want host.State) {
	t.Helper()
	for range 2 {
		if got, err := c.host.State(c.context(t)); err != nil || got != want {
			t.Fatalf("State: %q, %v; want %q", got, err, want)
		}
	}
	if got := c.host.Name(); got != c.name {
		t.Fatalf("its name was %q, and is %q", c.name, got)
	}
}

// wantAnswers asks the API server of a kubeconfig. The kubeconfig must have one context and name no files.
func (c *contract) wantAnswers(t *testing.T, kubeconfig []byte) {
	t.Helper()
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Contexts) != 1 || config.Contexts[config.CurrentContext] == nil {
		t.Errorf("a kubeconfig with %d contexts, of which %q is the current one", len(config.Contexts), config.CurrentContext)
	}
	client, err := apiserver.New(kubeconfig)
	if err == nil {
		err = client.Ready(c.context(t))
	}
	if err != nil {
		t.Fatalf("its API server: %v", err)
	}
}

func (c *contract) kubeconfig(t *testing.T) []byte {
	t.Helper()
	kubeconfig, err := c.host.Kubeconfig(c.context(t))
	if err != nil {
		t.Fatalf("Kubeconfig: %v", err)
	}
	return kubeconfig
}

// create calls Create, which has to ask for images once, and returns the kubeconfigs that Answers was called with.
func (c *contract) create(t *testing.T) [][]byte {
	t.Helper()
	var mu sync.Mutex
	var answered [][]byte
	asked := 0
	opts := c.opts.Create
	opts.Fleet = fleet
	wanted := opts.Images
	opts.Images = func(ctx context.Context) (host.ImageArchive, error) {
		mu.Lock()
		asked++
		mu.Unlock()
		if wanted == nil {
			return nil, nil
		}
		return wanted(ctx)
	}
	opts.Answers = func(kubeconfig []byte) {
		mu.Lock()
		defer mu.Unlock()
		answered = append(answered, slices.Clone(kubeconfig))
	}
	if err := c.host.Create(c.context(t), opts); err != nil {
		t.Fatalf("Create: %v (%s)", err, diag.Hint(err))
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != 1 {
		t.Errorf("Create asked %d times for images", asked)
	}
	return answered
}

// cancelled tests that methods which are called too late end with the reason, and leave the host as it is.
func (c *contract) cancelled(t *testing.T) {
	t.Helper()
	before, err := c.host.State(c.context(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.context(t))
	cancel()
	if err := c.host.Create(ctx, c.opts.Create); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Create, cancelled: %v", err)
	}
	c.wantState(t, before)
}

// looks tests that several goroutines may look at a running host at once.
func (c *contract) looks(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got, err := c.host.State(c.context(t)); err != nil || got != host.StateRunning {
				t.Errorf("State: %q, %v", got, err)
			}
			if kubeconfig, err := c.host.Kubeconfig(c.context(t)); err != nil || len(kubeconfig) == 0 {
				t.Errorf("Kubeconfig: %d bytes, %v", len(kubeconfig), err)
			}
			_, _ = c.host.Gateway(c.context(t)) // the test "found" judges the address
		})
	}
	group.Wait()
}

// absent tests that on a missing host only Create makes anything, and that Stop and Delete succeed.
func (c *contract) absent(t *testing.T) {
	if c.opts.Lasting {
		c.wantState(t, host.StateRunning)
		return
	}
	c.wantState(t, host.StateAbsent)
	if got, err := c.host.Start(c.context(t), nil); err != nil || got != host.StateAbsent {
		t.Errorf("Start: %q, %v", got, err)
	}
	if left, err := c.host.Delete(c.context(t)); err != nil || len(left) > 0 {
		t.Errorf("Delete: left %v, %v", left, err)
	}
	if _, err := c.host.Kubeconfig(c.context(t)); err == nil {
		t.Error("Kubeconfig: one of what does not exist")
	}
	if err := c.host.LoadImages(c.context(t), nil, nil); err != nil {
		t.Errorf("LoadImages: none, and %v", err)
	}
	if stopper, ok := c.host.(host.Stopper); ok {
		if err := stopper.Stop(c.context(t)); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	c.ask(t, "")
	c.wantState(t, host.StateAbsent)
}

// made tests that Create calls Answers once, and returns when the API server is ready.
func (c *contract) made(t *testing.T) {
	answered := c.create(t)
	if len(answered) != 1 {
		t.Fatalf("Answers was called %d times", len(answered))
	}
	c.wantState(t, host.StateRunning)
	c.wantAnswers(t, answered[0])
	c.wantAnswers(t, c.kubeconfig(t))
	if !c.opts.Lasting {
		c.keep(t)
	}
}

// found tests that a second Create, Start and LoadImages leave a running host as it is.
func (c *contract) found(t *testing.T) {
	if answered := c.create(t); len(answered) > 1 {
		t.Errorf("Answers was called %d times", len(answered))
	}
	if got, err := c.host.Start(c.context(t), nil); err != nil || got != host.StateRunning {
		t.Errorf("Start: %q, %v", got, err)
	}
	c.wantState(t, host.StateRunning)
	if err := c.host.LoadImages(c.context(t), nil, nil); err != nil {
		t.Errorf("LoadImages: none, and %v", err)
	}
	switch gateway, err := c.host.Gateway(c.context(t)); {
	case err != nil && diag.Hint(err) == "":
		t.Errorf("Gateway: %v, and no hint says what to do without", err)
	case err == nil && (!gateway.Listen.IsValid() || gateway.Host == ""):
		t.Errorf("Gateway: %+v", gateway)
	}
	c.cancelled(t)
	c.looks(t)
	c.wantKept(t)
}

// abilities tests the abilities of a running host.
func (c *contract) abilities(t *testing.T) {
	c.ask(t, fleet)
	if logger, ok := c.host.(host.Logger); ok {
		names, err := logger.Logs()
		if err != nil || len(names) == 0 || !slices.IsSorted(names) {
			t.Errorf("Logs: %v, %v", names, err)
		}
		for _, name := range names {
			f, err := logger.Log(name)
			if err != nil {
				t.Errorf("Log of %s: %v", name, err)
				continue
			}
			_ = f.Close() // it was only opened
		}
	}
	if exposed, ok := c.host.(host.Exposed); ok {
		if n, err := exposed.Neighbours(c.context(t)); err != nil || n == nil {
			t.Errorf("Neighbours: %v, %v", n, err)
		}
	}
	if guarded, ok := c.host.(host.Guarded); ok {
		if err := guarded.CheckAccess(c.context(t)); err != nil {
			t.Errorf("CheckAccess, where Create has installed: %v", err)
		}
	}
}

// ask tests the abilities that work in any state of a host. wantFleet is the identity of its fleet; "" while the host is missing.
func (c *contract) ask(t *testing.T, wantFleet string) {
	t.Helper()
	if complainer, ok := c.host.(host.Complainer); ok {
		if err := complainer.Trouble(); err != nil {
			t.Errorf("Trouble: %v", err)
		}
	}
	if owner, ok := c.host.(host.PortOwner); ok {
		if program, err := owner.Listens(1); err != nil || program != "" {
			t.Errorf("Listens: %q, %v at a port of nobody", program, err)
		}
	}
	if rememberer, ok := c.host.(host.Rememberer); ok {
		if names, err := rememberer.Deployments(); err != nil || len(names) > 0 {
			t.Errorf("Deployments: %v, %v; nobody has made one", names, err)
		}
	}
	if logger, ok := c.host.(host.Logger); ok {
		if f, err := logger.Log("no-such-program"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Log of no program: %v, %v", f, err)
		}
	}
	if onEngine, ok := c.host.(host.OnEngine); ok {
		if socket, err := onEngine.EngineSocket(c.context(t)); err != nil || socket == "" {
			t.Errorf("EngineSocket: %q, %v", socket, err)
		}
	}
	if marked, ok := c.host.(host.Marked); ok {
		if got, err := marked.Fleet(c.context(t)); err != nil || got != wantFleet {
			t.Errorf("Fleet: %q, %v; want %q", got, err, wantFleet)
		}
		if err := marked.Stranger(c.context(t)); err != nil {
			t.Errorf("Stranger, of what is ours: %v", err)
		}
	}
}

// stopped tests that a Stopper keeps its data, is StateStopped, and starts again with the data.
func (c *contract) stopped(t *testing.T) {
	stopper, ok := c.host.(host.Stopper)
	if !ok {
		return
	}
	for range 2 { // the second Stop finds nothing that runs
		if err := stopper.Stop(c.context(t)); err != nil {
			t.Fatalf("Stop: %v", err)
		}
	}
	c.wantState(t, host.StateStopped)
	c.ask(t, fleet)
	if got, err := c.host.Start(c.context(t), nil); err != nil || got != host.StateRunning {
		t.Fatalf("Start: %q, %v", got, err)
	}
	c.wantState(t, host.StateRunning)
	c.wantKept(t)
	if err := stopper.Stop(c.context(t)); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	c.create(t) // starts it as well
	c.wantState(t, host.StateRunning)
	c.wantKept(t)
}

// deleted tests that Delete leaves nothing, or names what is left.
func (c *contract) deleted(t *testing.T) {
	for again := range 2 {
		left, err := c.host.Delete(c.context(t))
		if err != nil || len(left) > 0 != c.opts.Lasting {
			t.Fatalf("Delete (%d): left %v, %v", again, left, err)
		}
	}
	if c.opts.Lasting {
		c.wantState(t, host.StateRunning)
		return
	}
	c.wantState(t, host.StateAbsent)
	c.ask(t, "")
}

func (c *contract) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(c.kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// keep makes a namespace that has to exist as long as the host does.
func (c *contract) keep(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: keptNamespace}}
	if _, err := c.client(t).CoreV1().Namespaces().Create(c.context(t), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *contract) wantKept(t *testing.T) {
	t.Helper()
	if c.opts.Lasting {
		return
	}
	if _, err := c.client(t).CoreV1().Namespaces().Get(c.context(t), keptNamespace, metav1.GetOptions{}); err != nil {
		t.Fatalf("what was made in it: %v", err)
	}
}
