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

// Run is the background server itself: what the command does that Ensure starts. It serves what the state folder says until ctx
// ends. It prints one line to hello, Ensure's end of a pipe, when it listens or when it cannot; and its log to log. changed, if not nil, is
// called after commits and tags; what it returns is logged.
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
	if err := atomicfile.Sweep(stateDir); err != nil { // who writes here either waits for us or has to end us first
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
	h := newHandler(s.RepoDir, Credentials{Username: s.Username, Password: s.Password}, logger)
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

// names are what clients know the server by: Flux, and this machine's own look at it.
func (s *state) names() []string {
	host, _, err := net.SplitHostPort(s.reachable())
	if err != nil {
		host = ""
	}
	return []string{s.Host, s.Listen.String(), host}
}

// tell calls changed after commits and tags. Without it they are found later: what goes wrong is logged.
func (s *state) tell(ctx context.Context, logger *slog.Logger, changed func(context.Context) error) {
	dir, err := gitDir(s.RepoDir)
	if err == nil {
		err = watchRefs(ctx, dir, func() {
			if err := changed(ctx); err != nil && ctx.Err() == nil {
				logger.Warn("nobody was told of a commit", "error", err)
			}
		})
	}
	if err != nil {
		logger.Warn("commits are not watched", "error", err)
	}
}

// lockAlive waits a moment: somebody who looks whether a server lives holds the lock for an instant.
func lockAlive(ctx context.Context, lock *flock.Flock) error {
	const moment = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	_, err := lock.TryLockContext(ctx, lockPoll)
	return err
}
