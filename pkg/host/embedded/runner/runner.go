// Package runner runs Deployments as processes of one machine, without containers. For managers with a single container it does the work of
// the kubelet and the Deployment controller. A process gets the command, environment, volumes, probes and ServiceAccount of its manifest.
// Addresses, ports and paths are adapted, because the processes share the machine. The Deployment's status shows the process's state. A
// Deployment that cannot run like this is refused, with the name of the field.
//
// There are no Pods, ReplicaSets or Endpoints; Resolve finds the process behind a Service. One process stands for any number of replicas.
// Processes run as the user who runs the host, and not isolated as a container is: the image is not their root folder, and security
// contexts and resource limits are not enforced. Without a private network, a port whose flag takes no address (CAPI's --webhook-port) is
// open on all addresses of the machine.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// Options of New.
type Options struct {
	// Dir is the runner's folder for volumes, ports and logs. New makes it with mode 0700.
	Dir string
	// HelpDir keeps the help texts of programs. Several runners may share it. Default: a folder in Dir.
	HelpDir string
	// Network is the loopback on which the processes listen. The runner claims the ports that it gives to them. Default: the machine's.
	Network privatenet.Loopback
	// Records is process.Spec.Records of each process.
	Records string
	// BackOff and MaxBackOff are the pauses between restarts. Default: 1 s doubling to 1 min.
	BackOff, MaxBackOff time.Duration
	// Parallel bounds how many Deployments are prepared, and how many processes start, at the same time. Default: twice the
	// number of CPUs, at least 4.
	Parallel int
	// StopGrace bounds the time that processes get to end when Run ends, even if a manifest has a longer grace period. Default: 5 s.
	StopGrace time.Duration
	// TokenRenewal bounds how long a token of a ServiceAccount is used. Default: 80 % of its validity, as the kubelet does.
	TokenRenewal time.Duration
}

// Runner runs the Deployments of one cluster.
type Runner struct {
	config   *rest.Config
	store    *images.Store
	opts     Options
	manager  manager.Manager
	client   client.Client // reads from the cache
	reader   client.Reader // reads from the API server
	recorder events.EventRecorder
	ports    *ports
	help     *helpTexts
	changes  chan event.TypedGenericEvent[types.NamespacedName]
	starting chan struct{} // a slot for each process that may be starting

	mu      sync.Mutex
	records map[types.NamespacedName]*record
	users   map[objectRef]map[types.NamespacedName]bool // the Deployments that need an object
	dirty   map[types.NamespacedName]bool               // Deployments of which a needed object has changed
	stopped bool
}

// New prepares a runner for the cluster at cfg, which has to have the administrator's rights. Images come from store. It starts no process.
func New(cfg *rest.Config, store *images.Store, opts Options) (*Runner, error) {
	setDefaults(&opts)
	for _, dir := range []string{opts.Dir, filepath.Join(opts.Dir, runDir), filepath.Join(opts.Dir, logsDir), opts.HelpDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the runner's folder: %w", err)
		}
	}
	known, err := openPorts(filepath.Join(opts.Dir, "ports.json"), opts.Network)
	if err != nil {
		return nil, fmt.Errorf("read the runner's ports: %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the server's priority and fairness does the throttling
	skip := true
	m, err := ctrl.NewManager(cfg, manager.Options{
		Scheme: clientgoscheme.Scheme, Logger: logr.Discard(),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Cache:                  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Controller:             config.Controller{SkipNameValidation: &skip}, // a process may have two runners
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cfg.Host, err)
	}
	r := &Runner{
		config: cfg, store: store, opts: opts, manager: m, client: m.GetClient(), reader: m.GetAPIReader(),
		recorder: m.GetEventRecorder("fleetctl"), ports: known, help: newHelpTexts(opts.HelpDir),
		changes: make(chan event.TypedGenericEvent[types.NamespacedName], 1024), starting: make(chan struct{}, opts.Parallel),
		records: map[types.NamespacedName]*record{}, users: map[objectRef]map[types.NamespacedName]bool{},
		dirty: map[types.NamespacedName]bool{},
	}
	return r, errors.Join(r.watch(), m.Add(manager.RunnableFunc(r.sweep)), m.Add(manager.RunnableFunc(r.tellOfOthers)))
}

func setDefaults(opts *Options) {
	if opts.HelpDir == "" {
		opts.HelpDir = filepath.Join(opts.Dir, "help")
	}
	if opts.Network == nil {
		opts.Network = privatenet.Machine{}
	}
	if opts.Parallel <= 0 {
		opts.Parallel = max(4, 2*runtime.NumCPU())
	}
	if opts.StopGrace == 0 {
		opts.StopGrace = 5 * time.Second
	}
}

// watch registers the objects whose changes make the runner reconcile a Deployment.
func (r *Runner) watch() error {
	onSpec := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, deleting{}))
	return ctrl.NewControllerManagedBy(r.manager).Named("deployments").
		For(&appsv1.Deployment{}, onSpec).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOf("Secret"))).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.usersOf("ConfigMap"))).
		WatchesMetadata(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(r.usersOf("ServiceAccount"))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.callers)).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.callers), onSpec).
		WatchesRawSource(source.TypedChannel(r.changes, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, key types.NamespacedName) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: key}}
			}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.opts.Parallel,
			LogConstructor:          func(*reconcile.Request) logr.Logger { return logr.Discard() },
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](500*time.Millisecond, time.Minute),
		}).
		Complete(reconcile.Func(r.reconcile))
}

// deleting passes on the beginning of a deletion, which does not change the generation of every kind of object.
type deleting struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (deleting) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
}

// Run runs the Deployments until ctx ends, and returns when all processes have ended.
func (r *Runner) Run(ctx context.Context) error {
	err := r.manager.Start(ctx)
	return errors.Join(err, r.stopAll(ctx))
}

func (r *Runner) stopAll(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	var all []*instance
	for _, rec := range r.records {
		if i := rec.current(); i != nil {
			all = append(all, i)
		}
	}
	r.mu.Unlock()
	var group errgroup.Group
	for _, i := range all {
		group.Go(func() error { return i.stop(ctx, r.opts.StopGrace) })
	}
	return group.Wait()
}

// usersOf finds the Deployments that need an object of kind.
func (r *Runner) usersOf(kind string) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		return r.markDirty(objectRef{kind, obj.GetNamespace(), obj.GetName()})
	}
}

// callers finds the Deployments that name a Service in the namespace of obj. obj is a Service, or a Deployment that may be behind one.
func (r *Runner) callers(_ context.Context, obj client.Object) []reconcile.Request {
	return r.markDirty(objectRef{"Services of", obj.GetNamespace(), ""})
}

func (r *Runner) markDirty(ref objectRef) []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	for key := range r.users[ref] {
		r.dirty[key] = true
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// use records the objects and Services that a Deployment needs.
func (r *Runner) use(key types.NamespacedName, refs []objectRef, services []types.NamespacedName) {
	for _, s := range services {
		refs = append(refs, objectRef{"Services of", s.Namespace, ""})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for ref, users := range r.users {
		if delete(users, key); len(users) == 0 {
			delete(r.users, ref)
		}
	}
	for _, ref := range refs {
		if r.users[ref] == nil {
			r.users[ref] = map[types.NamespacedName]bool{}
		}
		r.users[ref][key] = true
	}
}

func (r *Runner) takeDirty(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.dirty[key]
	delete(r.dirty, key)
	return was
}

func (r *Runner) setDirty(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[key] = true
}

// record returns the record of a Deployment. It makes an empty one at first.
func (r *Runner) record(key types.NamespacedName) (*record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec, ok := r.records[key]; ok {
		return rec, nil
	}
	rec, err := newRecord(key, filepath.Join(r.opts.Dir, runDir))
	if err == nil {
		r.records[key] = rec
	}
	return rec, err
}

// runs tells whether the Deployment has a process.
func (r *Runner) runs(key types.NamespacedName) bool {
	r.mu.Lock()
	rec := r.records[key]
	r.mu.Unlock()
	if rec == nil {
		return false
	}
	i := rec.current()
	return i != nil && i.view().status.Identity != process.Identity{}
}

// logFile is the path of the log of a Deployment's process, even if none runs.
func (r *Runner) logFile(key types.NamespacedName) string {
	return filepath.Join(r.opts.Dir, logsDir, key.Namespace+"_"+key.Name+".log") // names in Kubernetes have no underscore
}

// changed makes the runner reconcile key soon. It does not block: if the channel is full, a reconcile follows anyway.
func (r *Runner) changed(key types.NamespacedName) {
	select {
	case r.changes <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	default:
		go func() { r.changes <- event.TypedGenericEvent[types.NamespacedName]{Object: key} }()
	}
}

func isDeleted(d *appsv1.Deployment) bool { return d.DeletionTimestamp != nil }
