//go:build e2e && clouds

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	imagestore "github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// machine is one of a simulated cloud, seen from inside.
type machine struct {
	ID         string `json:"id"`
	ProviderID string `json:"providerID"`
	Hostname   string `json:"hostname"`
	Type       string `json:"type"`
	Zone       string `json:"zone"`
	Running    bool   `json:"running"`
	// Spot is true on spare capacity, which the cloud may take back.
	Spot bool `json:"spot"`
	// Image that it boots from, and the version of Kubernetes in it: "" is kubernetesVersion.
	Image   string `json:"image"`
	Version string `json:"-"`
	// Address is one of loopback that it has for itself; UserData is what it is given to boot with.
	Address  string `json:"address"`
	UserData string `json:"userData"`
}

// newerVersion is a version that a cluster of kubernetesVersion can be upgraded to. Simulated machines of both versions run the same
// programs.
const newerVersion = "v1.36.4"

// booter makes the machines of a simulated cloud boot, which no simulator does. The machines of a control plane run a real control plane.
// All machines become Nodes. A machine that is ended in the cloud stops, and its Node is deleted. With images, the Deployments of each
// cluster run as processes; without, pods run nowhere.
type booter struct {
	t      *testing.T
	dir    string
	list   func(ctx context.Context) ([]machine, error)
	images *imagestore.Store
	done   chan struct{}
	// environment is what leads a provider on the machines to their cloud.
	environment map[string]string

	// What follows belongs to the goroutine of run.
	machines map[string]*booted
	clusters map[string]*bootedCluster
	said     map[string]string

	mu  sync.Mutex
	log []bootEvent
}

// bootEvent is a machine that came or went.
type bootEvent struct {
	machine
	ended        bool
	controlPlane bool
	// nodes are how many machines of its kind its cluster has then.
	nodes int
}

// booted is a machine that has booted.
type booted struct {
	machine
	data    *bootData
	cluster *bootedCluster
	plane   *plane // nil on a worker
	isNode  bool
}

// bootedCluster is what the machines of a cluster have in common.
type bootedCluster struct {
	first    *bootData
	balancer *balancer
	planes   []*plane
	pods     *pods // nil where none run
}

// newBooter boots the machines that list tells of until the test ends. store, if not nil, has the images of what runs on them.
func newBooter(
	t *testing.T, list func(ctx context.Context) ([]machine, error), store *imagestore.Store, environment map[string]string,
) *booter {
	t.Helper()
	if os.Getenv(envPrograms) == "" {
		t.Fatalf("%s does not name the folder with etcd and kube-apiserver: run this test with `make e2e-clouds`", envPrograms)
	}
	b := &booter{
		t: t, dir: t.TempDir(), list: list, images: store, done: make(chan struct{}), environment: environment,
		machines: map[string]*booted{}, clusters: map[string]*bootedCluster{}, said: map[string]string{},
	}
	ctx, cancel := context.WithCancel(context.Background()) // that of t ends before its cleanups, which need the machines
	go b.run(ctx)
	t.Cleanup(func() {
		cancel()
		<-b.done
	})
	return b
}

// run looks again and again, as no simulator tells of changes.
func (b *booter) run(ctx context.Context) {
	defer close(b.done)
	defer b.endAll()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := b.list(ctx)
		if ctx.Err() != nil {
			return
		}
		b.tell("machines", err)
		for _, m := range now {
			b.tell(m.Hostname, b.follow(ctx, m))
		}
	}
}

// tell says each problem once.
func (b *booter) tell(what string, err error) {
	if err == nil {
		delete(b.said, what)
		return
	}
	if text := err.Error(); b.said[what] != text {
		b.said[what] = text
		fmt.Fprintf(os.Stderr, "    booter: %s: %s\n", what, text)
	}
}

// follow boots a machine that runs and has not booted, and ends one that has and does not run any more. What fails is tried again.
func (b *booter) follow(ctx context.Context, m machine) error {
	have := b.machines[m.ID]
	switch {
	case m.Running && have == nil:
		return b.boot(ctx, m)
	case m.Running && !have.isNode:
		return b.admit(ctx, have)
	case !m.Running && have != nil:
		return b.end(ctx, have)
	}
	return nil
}

func (b *booter) boot(ctx context.Context, m machine) error {
	d, err := readBootData(m.UserData, m.Hostname)
	if err != nil {
		return err
	}
	if d.node.Name != m.Hostname {
		return fmt.Errorf("kubeadm is told to call it %s", d.node.Name)
	}
	cluster := b.clusters[d.endpoint()]
	if cluster == nil {
		if d.join != nil {
			return fmt.Errorf("nobody is at %s", d.endpoint())
		}
		if cluster, err = b.newCluster(ctx, m, d); err != nil {
			return err
		}
		b.clusters[d.endpoint()] = cluster
	}
	if d.join != nil {
		if err := introduce(ctx, d.join, []byte(cluster.first.pki()["ca.crt"])); err != nil {
			return err
		}
	}
	one := &booted{machine: m, data: d, cluster: cluster}
	if d.controlPlane() {
		if one.plane, err = cluster.startPlane(ctx, filepath.Join(b.dir, m.ID), m, d); err != nil {
			return err
		}
	}
	b.machines[m.ID] = one
	return b.admit(ctx, one)
}

// newCluster is one whose first machine boots.
func (b *booter) newCluster(ctx context.Context, m machine, d *bootData) (*bootedCluster, error) {
	balancer, err := newBalancer(d.endpoint())
	if err != nil {
		return nil, err
	}
	c := &bootedCluster{first: d, balancer: balancer}
	if b.images == nil {
		return c, nil
	}
	if c.pods, err = newPods(ctx, filepath.Join(b.dir, "pods-"+m.ID), b.images, b.environment); err != nil {
		balancer.close()
	}
	return c, err
}

// admit makes the machine a Node of its cluster.
func (b *booter) admit(ctx context.Context, one *booted) error {
	api, err := one.cluster.client()
	if err != nil {
		return err
	}
	if one.data.join == nil {
		if err := uploadConfig(ctx, api, one.data); err != nil {
			return err
		}
	}
	if one.plane != nil {
		if err := mirror(ctx, api, one.machine); err != nil {
			return err
		}
	}
	if err := register(ctx, api, one.machine, one.data); err != nil {
		return err
	}
	if one.cluster.pods != nil && one.plane != nil {
		config, err := one.plane.config(one.data.endpoint())
		if err != nil {
			return err
		}
		if err := one.cluster.pods.run(ctx, config); err != nil {
			return err
		}
	}
	one.isNode = true
	b.note(one, false)
	return nil
}

// note keeps what happened, for those who ask in which order.
func (b *booter) note(one *booted, ended bool) {
	event := bootEvent{machine: one.machine, ended: ended, controlPlane: one.plane != nil}
	for _, other := range b.machines {
		if other.isNode && other.cluster == one.cluster && (other.plane == nil) == (one.plane == nil) {
			event.nodes++
		}
	}
	fmt.Fprintf(os.Stderr, "    booter: %s (%s) is a node: %v; %d of its kind\n", one.ID, one.Hostname, !ended, event.nodes)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, event)
}

// events returns all events but the first ones.
func (b *booter) events(first int) []bootEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]bootEvent{}, b.log[first:]...)
}

func (c *bootedCluster) startPlane(ctx context.Context, dir string, m machine, d *bootData) (*plane, error) {
	other := ""
	if len(c.planes) > 0 {
		other = c.planes[0].machine.Address
	}
	egress := ""
	if c.pods != nil {
		egress = c.pods.egressConfig()
	}
	p, err := startPlane(ctx, dir, m, d, c.first.cluster.Networking.ServiceSubnet, other, egress)
	if err != nil {
		return nil, err
	}
	c.planes = append(c.planes, p)
	c.balancer.leadTo(c.planes)
	return p, nil
}

// client speaks to one of the control plane's machines.
func (c *bootedCluster) client() (*kube.Client, error) {
	if len(c.planes) == 0 {
		return nil, errors.New("no machine of the control plane runs")
	}
	return c.planes[0].client()
}

// drop ends the processes of a machine.
func (c *bootedCluster) drop(gone *plane) {
	c.planes = slices.DeleteFunc(c.planes, func(p *plane) bool { return p == gone })
	c.balancer.leadTo(c.planes)
	_ = gone.stop() // what does not go with it goes with this process
}

// end takes a machine away, with its Node. Where it was the last of its control plane there is nobody left to know.
func (b *booter) end(ctx context.Context, one *booted) error {
	if one.plane != nil {
		one.cluster.drop(one.plane)
	}
	if len(one.cluster.planes) == 0 && one.cluster.pods != nil {
		err := one.cluster.pods.end()
		one.cluster.pods = nil
		if err != nil {
			return err
		}
	}
	if len(one.cluster.planes) > 0 {
		api, err := one.cluster.client()
		if err != nil {
			return err
		}
		if err := unregister(ctx, api, one.machine); err != nil {
			return err
		}
	}
	delete(b.machines, one.ID)
	b.note(one, true)
	return nil
}

// endAll leaves no process.
func (b *booter) endAll() {
	for _, c := range b.clusters {
		if c.pods != nil { // while there is somebody whom their end can be told
			if err := c.pods.end(); err != nil {
				b.t.Error(err)
			}
		}
		for _, p := range c.planes {
			if err := p.stop(); err != nil {
				b.t.Error(err)
			}
		}
		c.balancer.close()
	}
}

// balancer does the work of a load balancer, which the simulator's load balancers do not do: it listens at the cluster's endpoint, and
// passes connections on to the API servers.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string
	next     int
}

func newBalancer(endpoint string) (*balancer, error) {
	listener, err := net.Listen("tcp", endpoint)
	if err != nil {
		return nil, err
	}
	b := &balancer{listener: listener}
	go b.serve()
	return b, nil
}

func (b *balancer) leadTo(planes []*plane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = nil
	for _, p := range planes {
		b.backends = append(b.backends, p.api())
	}
}

func (b *balancer) serve() {
	for {
		connection, err := b.listener.Accept()
		if err != nil {
			return // it is closed
		}
		go b.lead(connection)
	}
}

func (b *balancer) lead(connection net.Conn) {
	b.mu.Lock()
	backends := b.backends
	b.next++
	first := b.next
	b.mu.Unlock()
	for i := range backends {
		if target, err := net.Dial("tcp", backends[(first+i)%len(backends)]); err == nil {
			join(connection, target)
			return
		}
	}
	_ = connection.Close()
}

func (b *balancer) close() { _ = b.listener.Close() }
