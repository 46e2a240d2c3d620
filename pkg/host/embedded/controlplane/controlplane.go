// Package controlplane runs the API of an embedded management cluster: etcd, kube-apiserver and the few controllers of
// kube-controller-manager that Cluster API and Flux rely on, as child processes on loopback. There is no scheduler, no
// kubelet and no pod network.
//
// controller-runtime's envtest starts etcd and kube-apiserver as well, and tests of other packages use it. This package cannot:
// envtest does not restart a process that crashes, its certificates last a week and are not renewed, its children outlive a
// parent that is killed, and every user of the machine can read its etcd, which asks for no credentials.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// Programs are the paths of the control plane's programs.
type Programs struct {
	Etcd              string `json:"etcd"`
	APIServer         string `json:"apiServer"`
	ControllerManager string `json:"controllerManager"`
}

// Options of Start.
type Options struct {
	// Dir is a private folder for data, keys, logs and ports. It is made when needed.
	Dir string
	// Programs to run.
	Programs Programs
	// Durable makes etcd flush each write to the disk before it answers. Without it the data survive a crash of any process, but not
	// a crash of the machine.
	Durable bool
	// Issuer of service accounts' tokens, an https URL. "" is an issuer that only the cluster itself knows. Tokens of this internal issuer
	// stay valid when Issuer changes.
	Issuer string
	// EgressSocket is the Unix socket of an egress.Proxy; empty lets the API server dial Services itself. A relative path is
	// relative to Dir.
	EgressSocket string
	// Network is the loopback on which the processes listen. Default: the machine's. The API server's port is opened there, the others are
	// claimed.
	Network privatenet.Loopback
	// Records is process.Spec.Records of each process.
	Records string
	// Log, if not nil, is called for each restart, each renewal and each changed port.
	Log func(format string, args ...any)
	// Now is the clock for certificates. Default: time.Now.
	Now func() time.Time
	// RenewalCheck is the time between two looks at the certificates. Default: a day.
	RenewalCheck time.Duration
}

// ControlPlane is a running control plane. It starts each process again that ends.
type ControlPlane struct {
	dir     string
	keys    pki
	ports   ports
	options Options

	etcd, apiServer, controllerManager *process.Supervisor
	stopRenewals                       context.CancelFunc
}

// The names of the programs. Their logs have the same names.
const (
	etcdName      = "etcd"
	apiServerName = "kube-apiserver"
	managerName   = "kube-controller-manager"
)

// Names returns the names of the programs. Each program comes after the programs that it needs.
func Names() []string { return []string{etcdName, apiServerName, managerName} }

// WantsCertificate tells whether the program of that name answers only clients with a certificate of the control plane.
func WantsCertificate(name string) bool { return name == etcdName || name == apiServerName }

const (
	pkiDir  = "pki"
	dataDir = "etcd"
	logDir  = "log"

	// portTries is how often Start tries to start the processes. It chooses other ports after another program has taken one.
	portTries = 3
	// crashes is how often a process may end before it was ready for the first time. A third try would not help a process that
	// crashes twice at once.
	crashes = 2
	// startTime bounds the time until one process is ready. A busy machine takes ten times as long as an idle one.
	startTime = 2 * time.Minute
	// grace is the time between SIGTERM and SIGKILL. The API server waits for requests in flight, and a watch never ends by itself.
	grace = 3 * time.Second

	// garbage is GOGC, in percent. Go's default is 100. A host is idle most of the time, so less memory is worth a little more work. The
	// API server keeps a higher value: with 50, garbage collection was a third of its work while providers were installed and clusters
	// made.
	garbage          = "50"
	apiServerGarbage = "100"
)

// Start starts the control plane and returns when the API server is ready. It uses the data that an earlier control plane left in
// the folder. ctx bounds only the start: the caller has to call Stop. The error quotes the process that failed.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Network == nil {
		o.Network = privatenet.Machine{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RenewalCheck == 0 {
		o.RenewalCheck = 24 * time.Hour
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: o.Dir, keys: pki{dir: filepath.Join(o.Dir, pkiDir)}, options: o}
	for _, dir := range []string{o.Dir, c.path(dataDir), c.path(logDir)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, diag.Wrap("make the folder of the control plane", err, "")
		}
	}
	if err := c.renew(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := c.startOnce(ctx)
		if err == nil {
			break
		}
		stopErr := c.Stop(context.WithoutCancel(ctx))
		if ctx.Err() == nil && try < portTries && stopErr == nil && c.ports.taken(ctx) {
			o.Log("a port was taken while starting, trying others: %v", err)
			continue
		}
		return nil, errors.Join(err, stopErr)
	}
	c.watchRenewals() //nolint:contextcheck // ctx bounds the start, they go on until Stop
	return c, nil
}

// startOnce starts the processes, each as soon as the process that it needs is ready.
func (c *ControlPlane) startOnce(ctx context.Context) (err error) {
	var moved bool
	if c.ports, moved, err = choosePorts(ctx, c.dir); err != nil {
		return err
	}
	if moved {
		c.options.Log("another program has the API server's port; the API server now listens on %d", c.ports.APIServer)
	}
	c.options.Network.Open(c.ports.APIServer)
	c.options.Network.Claim(c.ports.Etcd)
	c.options.Network.Claim(c.ports.EtcdPeer)
	if err := c.writeConfigs(); err != nil {
		return err
	}
	etcdReady, err := c.etcdReady()
	if err != nil {
		return err
	}
	c.etcd = c.supervise(etcdName, c.options.Programs.Etcd, c.etcdArgs(), etcdReady) //nolint:contextcheck // it runs until Stop
	if err := c.await(ctx, c.etcd); err != nil {
		return err
	}
	//nolint:contextcheck // it runs until Stop
	c.apiServer = c.supervise(apiServerName, c.options.Programs.APIServer, c.apiServerArgs(), c.apiReady())
	if err := c.await(ctx, c.apiServer); err != nil {
		return err
	}
	// Start does not wait for the controller manager. It works within moments, and callers watch for the objects that they need.
	//nolint:contextcheck // it runs until Stop
	c.controllerManager = c.supervise(managerName, c.options.Programs.ControllerManager, c.controllerManagerArgs(), nil)
	return nil
}

func (c *ControlPlane) supervise(name, program string, args []string, ready func(context.Context) error) *process.Supervisor {
	gc := garbage
	if name == apiServerName {
		gc = apiServerGarbage
	}
	spec := process.Spec{
		Name: name, Path: program, Args: args, Dir: c.dir, LogFile: c.logFile(name), Ready: ready, Records: c.options.Records,
		Env: []string{"GOGC=" + gc, "HOME=" + c.dir},
	}
	options := process.SupervisorOptions{
		BackOff: 200 * time.Millisecond, MaxBackOff: 10 * time.Second, ResetAfter: time.Minute, FirstRestartAtOnce: true,
	}
	var was process.Phase
	options.OnChange = func(s process.Status) {
		switch {
		case s.Phase == was:
		case s.Phase == process.PhaseBackOff:
			c.options.Log("%v; it is started again", failure(name, s))
		case s.Phase == process.PhaseReady && s.Restarts > 0 && ready != nil: // without ready, PhaseReady only means "started"
			c.options.Log("%s is ready again", name)
		}
		was = s.Phase
	}
	return process.Supervise(spec, options)
}

// failure returns the reason why a process does not run.
func failure(name string, s process.Status) error {
	if s.StartErr != nil {
		return fmt.Errorf("start %s: %w", name, s.StartErr)
	}
	if s.LastExit != nil {
		return &process.ExitError{Name: name, Exit: *s.LastExit}
	}
	return fmt.Errorf("%s: %w", name, process.ErrGone)
}

func (c *ControlPlane) await(ctx context.Context, s *process.Supervisor) error {
	wait, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("not ready within %s", startTime))
	defer cancel()
	return diag.Wrap("start "+s.Name(), s.AwaitReady(wait, crashes), "see "+c.logFile(s.Name()))
}

// Stop ends the processes and returns when they have ended. A process ends after the processes that need it. Stop may be called twice.
func (c *ControlPlane) Stop(ctx context.Context) error {
	if c.stopRenewals != nil {
		c.stopRenewals()
	}
	var errs []error
	for _, s := range []*process.Supervisor{c.controllerManager, c.apiServer, c.etcd} {
		if s == nil {
			continue
		}
		if err := s.Stop(ctx, grace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.Name(), err))
		}
	}
	return errors.Join(errs...)
}

// Config is the runner's client configuration. It has the administrator's rights, and follows a renewed certificate.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{
		Host: c.server(), UserAgent: "fleetctl-embedded",
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: c.keys.cert(authorityName), CertFile: c.keys.cert(runnerName), KeyFile: c.keys.key(runnerName),
		},
		// The runner asks on behalf of every process, and the server is on the same machine.
		QPS: 200, Burst: 400,
	}
}

// Kubeconfig returns the administrator's kubeconfig. It names no files.
func (c *ControlPlane) Kubeconfig() ([]byte, error) { return Kubeconfig(c.dir) }

func (c *ControlPlane) server() string { return "https://" + address(c.ports.APIServer) }

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) logFile(name string) string { return LogFile(c.dir, name) }

// LogFile is the path of the log of etcd, kube-apiserver or kube-controller-manager.
func LogFile(dir, program string) string { return filepath.Join(dir, logDir, program+".log") }

// renew makes the certificates that are missing or about to expire.
func (c *ControlPlane) renew() error {
	made, err := c.keys.ensure(c.options.Now())
	if err != nil {
		return err
	}
	if len(made) > 0 && len(made) <= len(leaves()) { // all is a first start
		c.options.Log("certificates renewed: %v", made)
	}
	return nil
}

// watchRenewals calls renew at each RenewalCheck until Stop, because a host may run longer than its certificates last.
func (c *ControlPlane) watchRenewals() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stopRenewals = cancel
	go func() {
		tick := time.NewTicker(c.options.RenewalCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := errors.Join(c.renew(), c.writeConfigs()); err != nil {
				c.options.Log("renew certificates: %v", err)
			}
		}
	}()
}
