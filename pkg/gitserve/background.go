package gitserve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/background"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const (
	startTime = 20 * time.Second
	endTime   = stopTime + 3*time.Second
	lockPoll  = 50 * time.Millisecond // a file lock cannot be waited for in another way that a context could end
)

// Spec is a background server: what it serves, where, and how it is started.
type Spec struct {
	// StateDir holds the server's port, password, process id and log; one server for each.
	StateDir string
	// RepoDir is the working tree, or bare repository, to serve.
	RepoDir string
	// Listen is the address to bind.
	Listen netip.Addr
	// Host is the name or address that clients know the server by; empty: that of last time.
	Host string
	// Started says that only what served before is to serve again, and nobody tells Flux of anything: a server from before, without TLS, stays as
	// it is.
	Started bool
	// Port to listen on; 0: the port of last time, or a free one, which is then kept.
	Port int
	// Executable and Args start a process that calls Run with StateDir and its standard output.
	Executable string
	Args       []string
}

// Endpoint is how the server is reached.
type Endpoint struct {
	// Port it listens on.
	Port int
	// Username and Password that it asks for. They stay the same for the life of a state folder.
	Username, Password string
	// CA is PEM of the authority of its certificate: Flux asks nobody for the repository, and tells nobody the password, who has none of it.
	// Empty: the server is one from before, without TLS.
	CA string
}

// PortTakenError says that another program has the port which the server had, and which Flux therefore knows.
type PortTakenError struct{ Address string }

// Error names the address.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("another program listens on %s", e.Address)
}

// Ensure makes sure that a server as in spec runs in the background, and says whether it had to start one. A healthy one stays; one
// that is dead, serves another folder or listens elsewhere is replaced, on the same port and with the same password. It returns when
// the server answers. Errors: *PortTakenError, ErrNoRepository, those of CheckGit, or why the server ended, in its own words.
func Ensure(ctx context.Context, spec Spec) (_ *Endpoint, started bool, err error) {
	if spec.RepoDir, err = filepath.Abs(spec.RepoDir); err != nil {
		return nil, false, err
	}
	if _, err := gitDir(spec.RepoDir); err != nil {
		return nil, false, err
	}
	unlock, err := acquire(ctx, spec.StateDir)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := readState(spec.StateDir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
		s = newState()
	} else if err != nil {
		return nil, false, err
	}
	runs, err := alive(spec.StateDir)
	if err != nil {
		return nil, false, err
	}
	if err := s.secure(spec); err != nil {
		return nil, false, err
	}
	if runs && s.fits(spec) && s.healthy(ctx) {
		return s.endpoint(), false, nil
	}
	if err := end(ctx, spec.StateDir); err != nil {
		return nil, false, err
	}
	if err := CheckGit(ctx); err != nil {
		return nil, false, err
	}
	s.RepoDir, s.Listen, s.Host = spec.RepoDir, spec.Listen, cmp.Or(spec.Host, s.Host)
	if spec.Port != 0 {
		s.Port = spec.Port
	}
	if err := s.start(ctx, spec); err != nil {
		return nil, false, diag.Wrap("serve "+spec.RepoDir, err, hint(err, spec.StateDir))
	}
	return s.endpoint(), true, nil
}

func (s *state) fits(spec Spec) bool {
	return s.RepoDir == spec.RepoDir && s.Listen == spec.Listen && (spec.Port == 0 || spec.Port == s.Port) &&
		(spec.Host == "" || spec.Host == s.Host)
}

// secure gives the server an authority where it has none, or one that soon counts no longer, and a new password with it: over the
// connections of before, everybody on this machine could have heard the old one. What runs with another state is not healthy any more.
func (s *state) secure(spec Spec) (err error) {
	if spec.Started && s.Port != 0 || s.Authority != nil && s.Authority.lasts() {
		return nil
	}
	s.Authority, err = newAuthority()
	s.Password = rand.Text()
	return err
}

func (s *state) endpoint() *Endpoint {
	at := &Endpoint{Port: s.Port, Username: s.Username, Password: s.Password}
	if s.Authority != nil {
		at.CA = s.Authority.Certificate
	}
	return at
}

func hint(err error, dir string) string {
	if _, ok := errors.AsType[*PortTakenError](err); ok {
		return "end that program: Flux knows the fleet repo by this port"
	}
	return "see " + filepath.Join(dir, logFile)
}

// start runs the server and waits until it says that it listens. The state is written before, for the server to read, and after,
// with the port that it has found.
func (s *state) start(ctx context.Context, spec Spec) error {
	// Without it nobody takes the id of the last server for that of this one.
	if err := os.Remove(filepath.Join(spec.StateDir, pidFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.write(spec.StateDir); err != nil {
		return err
	}
	log, err := background.OpenLog(filepath.Join(spec.StateDir, logFile))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()                 // the server has its own handle
	cmd := exec.Command(spec.Executable, spec.Args...) //nolint:gosec,noctx // the caller says what to run; it outlives the context
	cmd.Dir, cmd.Env, cmd.Stderr = spec.StateDir, childEnvironment(), log
	detach(cmd)
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Executable, err)
	}
	hello, err := listenTo(ctx, said)
	if err != nil {
		_ = cmd.Process.Kill() // it is our child, so the id is its
		_ = cmd.Wait()
		return err
	}
	if err := cmd.Process.Release(); err != nil {
		return err
	}
	s.Port = hello.Port
	return s.write(spec.StateDir)
}

// hello is the one line that a server prints when it listens, or knows that it cannot.
type hello struct {
	Port  int    `json:"port,omitempty"`
	Error string `json:"error,omitempty"`
	// Taken is the address, if the error is that somebody else has it.
	Taken string `json:"taken,omitempty"`
}

// listenTo waits for the server's hello.
func listenTo(ctx context.Context, from io.ReadCloser) (*hello, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	line, err := background.Hear(ctx, from)
	switch {
	case errors.Is(err, background.ErrSilent):
		return nil, fmt.Errorf("the git server %w", err)
	case err != nil:
		return nil, fmt.Errorf("wait for the git server to start: %w", err)
	}
	h := &hello{}
	if err := json.Unmarshal([]byte(line), h); err != nil {
		return nil, fmt.Errorf("the git server says %q: %w", strings.TrimSpace(line), err)
	}
	switch {
	case h.Taken != "":
		return nil, &PortTakenError{Address: h.Taken}
	case h.Error != "":
		return nil, errors.New(h.Error)
	}
	return h, nil
}

// childEnvironment is what the server has to know of this one.
func childEnvironment() []string {
	return background.Environment("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "LANG", "TZ")
}

// Stop ends the background server of a state folder and returns when it has ended. None running is no error; the port and the
// password stay for the next Ensure.
func Stop(ctx context.Context, stateDir string) (err error) {
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := acquire(ctx, stateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return end(ctx, stateDir)
}

// end asks the server to end, and kills it if it does not. Its process id is used only while it holds its lock, so no other process
// can be hit.
func end(ctx context.Context, dir string) error {
	for _, signal := range []func(*os.Process) error{terminate, (*os.Process).Kill} {
		runs, err := alive(dir)
		if err != nil || !runs {
			return err
		}
		pid, err := readPID(dir)
		if err != nil {
			return fmt.Errorf("find the git server of %s: %w", dir, err)
		}
		if pid > 0 {
			process, err := os.FindProcess(pid)
			if err != nil {
				return fmt.Errorf("find the git server of %s: %w", dir, err)
			}
			if err := signal(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("end the git server (process %d): %w", pid, err)
			}
		} // else it is just starting, or about to find out that it cannot
		wait, cancel := context.WithTimeout(ctx, endTime)
		err = waitDead(wait, dir)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("wait for the git server of %s to end: %w", dir, err)
		}
	}
	return diag.Errorf("see "+filepath.Join(dir, logFile), "the git server of %s does not end", dir)
}

// ServerStatus is what is known of the server of a state folder.
type ServerStatus struct {
	// Running: its process lives. Healthy: it answers as it should.
	Running, Healthy bool
	// TLS: it has a certificate that Flux checks. Servers of versions before have none, until the next init.
	TLS bool
	// PID of its process, 0 if there is none.
	PID int
	// RepoDir, Listen and Port are those of the running server, or of the last one.
	RepoDir string
	Listen  netip.Addr
	Port    int
}

// Status looks at the server of a state folder without changing anything. It needs no lock.
func Status(ctx context.Context, stateDir string) (*ServerStatus, error) {
	s, err := readState(stateDir)
	if errors.Is(err, errDamaged) {
		runs, err := alive(stateDir)
		return &ServerStatus{Running: runs}, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &ServerStatus{}, nil
	}
	if err != nil {
		return nil, err
	}
	st := &ServerStatus{RepoDir: s.RepoDir, Listen: s.Listen, Port: s.Port, TLS: s.Authority != nil}
	if st.Running, err = alive(stateDir); err != nil {
		return nil, err
	}
	if st.Running {
		st.Healthy = s.healthy(ctx)
		st.PID, err = readPID(stateDir)
	}
	return st, err
}

// acquire keeps other fleetctl processes out of the state folder, which it makes if need be.
func acquire(ctx context.Context, dir string) (func() error, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		lock := flock.New(filepath.Join(dir, lockFile))
		_, err := lock.TryLockContext(ctx, lockPoll)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the folder went between the two
		}
		guards := false
		if err == nil {
			guards, err = atomicfile.Guards(lock)
		}
		if err != nil {
			return nil, diag.Wrap("lock "+lock.Path(), err, "another fleetctl works there; wait for it to end")
		}
		if guards {
			return lock.Unlock, nil
		}
	}
}
