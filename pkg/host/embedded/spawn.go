package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/background"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

const (
	// startTime bounds the time until the API server is ready. It allows for pulling images over a slow line.
	startTime = 10 * time.Minute
	// stopTime is how long a supervisor may take to end its processes in order. After that it is killed, and they end with it.
	stopTime = 20 * time.Second
)

// hello is the one line that the supervisor writes to its standard output.
type hello struct {
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// spawn starts the supervisor and returns when the API server is ready. On an error, the supervisor has ended. If ctx ends first, spawn
// ends the supervisor, so that an interrupted command leaves nothing in the background.
func (h *Host) spawn(ctx context.Context) error {
	log, err := background.OpenLog(h.dir.path(supervisorLog))
	if err != nil {
		return err
	}
	// The supervisor has its own handle.
	defer log.Close()
	//nolint:gosec,noctx // the supervisor outlives the context
	cmd := exec.Command(h.opts.Executable, append(append([]string(nil), h.opts.Args...), string(h.dir))...)
	cmd.Dir, cmd.Env, cmd.Stderr = string(h.dir), supervisorEnvironment(), log
	detach(cmd)
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	ephemeral, err := h.isEphemeral()
	if err != nil {
		return err
	}
	if ephemeral {
		if err := h.holdLifeline(cmd); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if in, ok := cmd.Stdin.(*os.File); ok {
		_ = in.Close() // the supervisor has its own handle
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // only to reap the supervisor; its log says how it ended
		close(ended)
	}()
	err = listenTo(ctx, said)
	if err == nil {
		return nil
	}
	failed := h.startFailed(ctx, ended, err)
	select {
	case <-ended:
		// fleetctl asks a supervisor to end before it kills it. So another program killed this one, or the kernel did because it lacked memory.
		if errors.Is(err, background.ErrSilent) && killed(cmd.ProcessState) {
			return fmt.Errorf("%w: %w", errKilled, failed)
		}
	default:
	}
	return failed
}

// errKilled means that the supervisor was killed before its host was ready. A new start may succeed.
var errKilled = errors.New("its supervisor was killed")

func killed(how *os.ProcessState) bool {
	status, ok := how.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// holdLifeline gives an ephemeral supervisor a pipe as its standard input. The pipe closes when this process ends, even by kill -9.
func (h *Host) holdLifeline(cmd *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin = r
	lifelines.Store(h.dir, w)
	return nil
}

// lifelines are the writing ends of the pipes of ephemeral hosts, by the hosts' folders. They belong to the process and not to a Host,
// because the garbage collector would close the pipe of a Host without references.
var lifelines sync.Map

// startFailed ends the supervisor and the processes that it has left, and adds the last lines of its log to err.
func (h *Host) startFailed(ctx context.Context, ended <-chan struct{}, err error) error {
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if endErr := h.end(stop); endErr != nil {
		return errors.Join(err, endErr)
	}
	select {
	case <-ended:
	case <-stop.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hint := diag.Hint(err)
	if hint == "" {
		hint = "see " + h.dir.path(supervisorLog)
	}
	if errors.Is(err, background.ErrSilent) {
		if lines := lastLines(h.dir.path(supervisorLog), 5); len(lines) > 0 {
			err = fmt.Errorf("%w; its log ends with:\n  %s", err, strings.Join(lines, "\n  "))
		}
	}
	return diag.Wrap("start management cluster "+h.name, err, hint)
}

// listenTo waits for the supervisor's hello, and returns the error in it.
func listenTo(ctx context.Context, from io.ReadCloser) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("not ready within %s", startTime))
	defer cancel()
	line, err := background.Hear(ctx, from)
	if errors.Is(err, background.ErrSilent) {
		return fmt.Errorf("its supervisor %w", background.ErrSilent)
	}
	if err != nil {
		return err
	}
	var h hello
	if err := json.Unmarshal([]byte(line), &h); err != nil {
		return fmt.Errorf("the supervisor says %q: %w", strings.TrimSpace(line), err)
	}
	if !h.Ready {
		return diag.Errorf(h.Hint, "%s", h.Error)
	}
	return nil
}

// end ends the supervisor, and processes that a killed supervisor has left. It returns when all have ended.
func (h *Host) end(ctx context.Context) error {
	if err := h.endSupervisor(ctx); err != nil {
		return err
	}
	if err := h.waitGone(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(h.dir.path(processesDir)); errors.Is(err, fs.ErrNotExist) {
		return nil // no supervisor has ever run
	}
	alive := flock.New(h.dir.path(aliveFile))
	free, err := alive.TryLock()
	if err != nil || !free { // another command has just started a supervisor, which ends such processes itself
		return err
	}
	_, err = h.dir.endLeftovers(ctx)
	return errors.Join(err, alive.Unlock())
}

// endSupervisor asks the supervisor to end, and kills it if it does not. Its processes end with it.
func (h *Host) endSupervisor(ctx context.Context) error {
	if w, ok := lifelines.LoadAndDelete(h.dir); ok {
		_ = w.(io.Closer).Close() //nolint:forcetypeassert // nothing else is ever stored
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		runs, err := h.dir.alive()
		if err != nil || !runs {
			return err
		}
		id, err := h.dir.supervisor()
		if err == nil {
			err = id.Signal(signal)
		}
		if err != nil && !errors.Is(err, process.ErrGone) { // gone: it has just ended, or is just starting
			return err
		}
		wait, cancel := context.WithTimeout(ctx, stopTime)
		err = h.dir.waitFree(wait, aliveFile)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("wait for the supervisor to end: %w", err)
		}
	}
	return errors.New("the supervisor does not end")
}

// waitGone returns when the process of the last supervisor has ended. The supervisor frees its lock a moment earlier. Until its end, the
// folder is its working folder, and its log is open there, so a file system that is mounted there could not be unmounted.
func (h *Host) waitGone(ctx context.Context) error {
	id, err := h.dir.supervisor()
	if err != nil {
		return nil // there was none, or it has not written its identity; then a free lock has to be enough
	}
	wait, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := id.Wait(wait); err != nil {
		return fmt.Errorf("wait for the supervisor to end: %w", err)
	}
	return nil
}

// supervisorEnvironment is the part of this process's environment that the supervisor gets. It includes the settings for pulling images.
func supervisorEnvironment() []string {
	return background.Environment(
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE",
	)
}

// RunBeside implements host.Companion.
func (h *Host) RunBeside(cmd *exec.Cmd) error { return process.RunAttached(cmd) }
