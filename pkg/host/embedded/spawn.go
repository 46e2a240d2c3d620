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
	// startTime bounds the way to a ready API server, images pulled over a slow line included.
	startTime = 10 * time.Minute
	// stopTime is what a supervisor gets to end its processes in order, before it is killed and they with it.
	stopTime = 20 * time.Second
)

// hello is what the supervisor says, once, on its standard output.
type hello struct {
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// spawn starts the supervisor and returns when the API server is ready. One that fails has ended when it returns. If ctx
// ends first, the supervisor is ended: a command that was interrupted leaves nothing behind in the background.
func (h *Host) spawn(ctx context.Context) error {
	log, err := background.OpenLog(h.dir.path(supervisorLog))
	if err != nil {
		return err
	}
	defer log.Close()                                                                                       // the supervisor has its own handle
	cmd := exec.Command(h.opts.Executable, append(append([]string(nil), h.opts.Args...), string(h.dir))...) //nolint:gosec,noctx // it outlives the context
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
		_ = in.Close() // the other end has it
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // reaped, if we live that long; how it ended is in its log, unless it was killed
		close(ended)
	}()
	err = listenTo(ctx, said)
	if err == nil {
		return nil
	}
	failed := h.startFailed(ctx, ended, err)
	select {
	case <-ended:
		// Nobody but a stranger, or a system short of memory, kills one that has said nothing yet: we ask it to end first.
		if errors.Is(err, background.ErrSilent) && killed(cmd.ProcessState) {
			return fmt.Errorf("%w: %w", errKilled, failed)
		}
	default:
	}
	return failed
}

// errKilled is for a supervisor that was killed before its host was ready: nothing says that it would not have become so.
var errKilled = errors.New("its supervisor was killed")

func killed(how *os.ProcessState) bool {
	status, ok := how.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// holdLifeline gives an ephemeral supervisor a pipe as its standard input that closes when we end, also by kill -9.
func (h *Host) holdLifeline(cmd *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin = r
	lifelines.Store(h.dir, w)
	return nil
}

// lifelines are the ends of the pipes that ephemeral hosts listen to, by folder. They belong to this process and not to a
// Host: one that nobody refers to any more would be collected, and its file closed.
var lifelines sync.Map

// startFailed ends what is left of a supervisor and completes the error with what its log has to say.
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
			err = fmt.Errorf("%w; its last words:\n  %s", err, strings.Join(lines, "\n  "))
		}
	}
	return diag.Wrap("start management cluster "+h.name, err, hint)
}

// listenTo waits for the supervisor's hello.
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

// end ends the supervisor, and what one that was killed has left. It returns when all is gone.
func (h *Host) end(ctx context.Context) error {
	if err := h.endSupervisor(ctx); err != nil {
		return err
	}
	if err := h.waitGone(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(h.dir.path(processesDir)); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing ever ran
	}
	alive := flock.New(h.dir.path(aliveFile))
	free, err := alive.TryLock()
	if err != nil || !free { // somebody has just started it again, and has ended what was left
		return err
	}
	_, err = h.dir.endLeftovers(ctx)
	return errors.Join(err, alive.Unlock())
}

// endSupervisor asks the supervisor to end, and kills it if it does not; its processes end with it.
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
		if err != nil && !errors.Is(err, process.ErrGone) { // gone: it has just ended, or has just begun
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

// waitGone returns when the last supervisor is no process any more. It gives its lock back a moment before: until it has ended, the folder
// is where it works, and its log is open there, so that a disk of its own could not be taken away.
func (h *Host) waitGone(ctx context.Context) error {
	id, err := h.dir.supervisor()
	if err != nil {
		return nil // there was none, or it has left no word: then that its lock is free is all that can be known
	}
	wait, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := id.Wait(wait); err != nil {
		return fmt.Errorf("wait for the supervisor to end: %w", err)
	}
	return nil
}

// supervisorEnvironment is what the supervisor has to know of this one. What pulling images takes is in it.
func supervisorEnvironment() []string {
	return background.Environment(
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE",
	)
}

// RunBeside runs cmd to its end, with our terminal. It ends with this process, as an ephemeral host does.
func (h *Host) RunBeside(cmd *exec.Cmd) error { return process.RunAttached(cmd) }
