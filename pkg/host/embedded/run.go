package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/gofrs/flock"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetctl/fleetctl/pkg/background"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/egress"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// egressSocket is in the API server's working folder, so that a short relative path leads to it.
const egressSocket = "egress.sock"

// Streams of a supervisor.
type Streams struct {
	// In ends when the command that owns an ephemeral host has ended.
	In io.Reader
	// Hello gets one line, when the host is ready or has failed to start.
	Hello io.Writer
	// Log gets the supervisor's log.
	Log io.Writer
}

// Run is the supervisor. The command that Create starts calls it. It runs the host that the state folder describes until ctx ends. For an
// ephemeral host it also stops when streams.In ends. It returns when all processes of the host have ended.
//
// The same command also serves as the helper of package privatenet, which Run starts.
func Run(ctx context.Context, stateDir string, streams Streams) error {
	if privatenet.IsHelper() {
		return privatenet.Help()
	}
	keepPrivate()
	defer background.Outlive()()
	streams.Log = &patientWriter{to: streams.Log}
	s := &supervisor{
		dir: absolute(stateDir), streams: streams,
		log: slog.New(slog.NewTextHandler(streams.Log, nil)),
	}
	// Libraries log through one logger of the process. Only their warnings and errors go to this log, because the rest would fill it.
	warnings := slog.NewTextHandler(streams.Log, &slog.HandlerOptions{Level: slog.LevelWarn})
	ctrllog.SetLogger(logr.FromSlogHandler(warnings))
	klog.SetLogger(logr.FromSlogHandler(warnings))
	err := s.run(ctx)
	if err != nil {
		s.log.Error("the host ends", "error", err)
		return err
	}
	s.log.Info("the host has been stopped")
	return nil
}

// absolute returns the state folder with an absolute path.
func absolute(dir string) stateDir {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return stateDir(dir)
}

type supervisor struct {
	dir     stateDir
	streams Streams
	log     *slog.Logger
	config  *config
	store   *images.Store
	greeted bool
}

// logf logs one line, for packages that take a function for that.
func (s *supervisor) logf(format string, args ...any) { s.log.Info(fmt.Sprintf(format, args...)) }

func (s *supervisor) run(ctx context.Context) (err error) {
	// Until the host is ready, a command waits for it. Report an error to that command.
	defer func() {
		if err != nil && !s.greeted {
			err = errors.Join(err, s.say(hello{Error: err.Error(), Hint: diag.Hint(err)}))
		}
	}()
	alive, starting, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alive.Unlock()) }()
	defer func() { _ = starting.Unlock() }()
	if s.config, err = s.dir.readConfig(); err != nil {
		return err
	}
	ended, err := s.dir.endLeftovers(ctx)
	if len(ended) > 0 {
		s.log.Warn("ended processes that a killed supervisor had left behind", "processes", ended)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.config.Ephemeral {
		go func() {
			_, _ = io.Copy(io.Discard, s.streams.In) // ends when the owning command has ended
			cancel()
		}()
	}
	return s.holdInNetwork(ctx, func() error {
		if s.greeted {
			return nil
		}
		if err := s.dir.writeFile(completeFile, nil); err != nil {
			return err
		}
		return errors.Join(starting.Unlock(), s.say(hello{Ready: true}))
	})
}

// lock takes the folder's locks and writes this process's identity to the folder.
func (s *supervisor) lock(ctx context.Context) (alive, starting *flock.Flock, err error) {
	const moment = 2 * time.Second // a process that only looks whether a lock is held takes the lock for an instant
	wait, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	alive, starting = flock.New(s.dir.path(aliveFile)), flock.New(s.dir.path(startingFile))
	for _, l := range []*flock.Flock{starting, alive} {
		if _, err := l.TryLockContext(wait, lockPoll); err != nil {
			return nil, nil, diag.Wrap("", fmt.Errorf("%s has %s: %w", s.dir.holder(), string(s.dir), errors.Join(err, starting.Close())), "")
		}
	}
	id, err := process.Find(os.Getpid())
	if err == nil {
		err = s.dir.writeJSON(identityFile, id)
	}
	if err != nil {
		return nil, nil, errors.Join(err, alive.Unlock(), starting.Unlock())
	}
	return alive, starting, nil
}

func (s *supervisor) say(h hello) error {
	s.greeted = true
	return background.Greet(s.streams.Hello, h)
}

// hold runs the processes on the loopback network until ctx ends. It calls ready when the API server is ready.
func (s *supervisor) hold(ctx context.Context, network privatenet.Loopback, ready func() error) (err error) {
	dir := s.dir.path(controlPlaneDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.config.ImageDir != "" {
		if s.store, err = images.Open(s.config.ImageDir, images.Options{Mirrors: s.config.Mirrors}); err != nil {
			return err
		}
	}
	programs := s.config.Programs
	if programs == nil {
		if programs, err = s.config.Images.programs(ctx, s.store); err != nil {
			return err
		}
	}
	work := newWorkloads(s, network)
	proxy, err := egress.Listen(ctx, filepath.Join(dir, egressSocket), work.Resolve, s.logf)
	if err != nil {
		return err
	}
	proxy.Dial = network.Dial
	// The API server may call webhooks until its end, so the proxy ends after it.
	proxyCtx, endProxy := context.WithCancel(context.WithoutCancel(ctx))
	proxyDone := make(chan error, 1)
	go func() { proxyDone <- proxy.Serve(proxyCtx) }()
	defer func() {
		endProxy()
		err = errors.Join(err, <-proxyDone)
	}()
	began := time.Now()
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Programs: *programs, Durable: !s.config.Ephemeral, EgressSocket: egressSocket, Log: s.logf,
		Issuer: s.config.Issuer, Network: network, Records: s.dir.path(processesDir),
	})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		err = errors.Join(err, plane.Stop(stop))
	}()
	s.log.Info("the API server is ready", "after", time.Since(began).Round(time.Millisecond))
	return work.Run(ctx, plane.Config(), ready)
}
