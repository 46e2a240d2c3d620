package gitserve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/background"
)

// Run is the background server itself. The command that Ensure starts calls it. Run serves the repository in the state folder until ctx
// ends. It writes one line to hello, which Ensure reads, when it listens or has failed to listen. It logs to log. After each change of a
// branch or tag it calls changed, if changed is not nil, and logs the error of changed.
func Run(ctx context.Context, stateDir string, hello, log io.Writer, changed func(context.Context) error) error {
	defer background.Outlive()()
	logger := slog.New(slog.NewTextHandler(log, nil))
	err := run(ctx, stateDir, hello, logger, changed)
	if err != nil {
		logger.Error("the git server ends", "error", err)
		return err
	}
	logger.Info("the git server has been stopped")
	return nil
}

func run(ctx context.Context, stateDir string, out io.Writer, logger *slog.Logger, changed func(context.Context) error) (err error) {
	lock := flock.New(filepath.Join(stateDir, aliveFile))
	if err := lockAlive(ctx, lock); err != nil {
		err = fmt.Errorf("another git server runs for %s: %w", stateDir, err)
		return errors.Join(err, background.Greet(out, hello{Error: err.Error()}))
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := atomicfile.Sweep(stateDir); err != nil { // safe: Ensure waits for this process while it holds the folder's lock
		return errors.Join(err, background.Greet(out, hello{Error: err.Error()}))
	}
	if err := atomicfile.Write(filepath.Join(stateDir, pidFile), []byte(strconv.Itoa(os.Getpid())+"\n"), private); err != nil {
		return errors.Join(err, background.Greet(out, hello{Error: err.Error()}))
	}
	s, err := readState(stateDir)
	if err != nil {
		return errors.Join(err, background.Greet(out, hello{Error: err.Error()}))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address())
	if err != nil {
		err = fmt.Errorf("listen on %s: %w", s.address(), err)
		no := hello{Error: err.Error()}
		if errors.Is(err, errAddressInUse) {
			no.Taken = s.address()
		}
		return errors.Join(err, background.Greet(out, no))
	}
	h := NewHandler(s.RepoDir, Credentials{Username: s.Username, Password: s.Password}, logger)
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return errors.Join(fmt.Errorf("listen on %s: no TCP", s.address()), listener.Close())
	}
	h.identity = s.identity()
	if s.Authority != nil {
		config, err := s.Authority.issue(s.names()...)
		if err != nil {
			return errors.Join(err, background.Greet(out, hello{Error: err.Error()}), listener.Close())
		}
		listener = tls.NewListener(listener, config)
	}
	logger.Info("the git server listens", "address", listener.Addr().String(), "repository", s.RepoDir)
	if err := background.Greet(out, hello{Port: bound.Port}); err != nil {
		return errors.Join(err, listener.Close())
	}
	if changed == nil {
		return serve(ctx, listener, h)
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.tell(ctx, logger, changed) })
	defer watch.Wait()
	defer cancel()
	return serve(ctx, listener, h)
}

// names are the names and addresses in the server's certificate: the ones by which Flux and the health check reach it.
func (s *state) names() []string {
	host, _, err := net.SplitHostPort(s.reachable())
	if err != nil {
		host = ""
	}
	return []string{s.Host, s.Listen.String(), host}
}

// tell calls changed after each change of a branch or tag. It only logs errors, because Flux finds the change later by itself.
func (s *state) tell(ctx context.Context, logger *slog.Logger, changed func(context.Context) error) {
	dir, err := gitDir(s.RepoDir)
	if err == nil {
		err = watchRefs(ctx, dir, func() {
			if err := changed(ctx); err != nil && ctx.Err() == nil {
				logger.Warn("cannot tell Flux of a commit", "error", err)
			}
		})
	}
	if err != nil {
		logger.Warn("cannot watch for commits; Flux finds them at its next interval", "error", err)
	}
}

// lockAlive locks aliveFile. It waits for two seconds, because alive locks the file for an instant, too.
func lockAlive(ctx context.Context, lock *flock.Flock) error {
	const moment = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	_, err := lock.TryLockContext(ctx, lockPoll)
	return err
}
