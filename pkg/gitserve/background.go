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
	lockPoll  = 50 * time.Millisecond // polled, because a context cannot end a blocking wait for a file lock
)

// Spec describes a background server: the repository that it serves, its address, and the command that starts it.
type Spec struct {
	// StateDir holds the server's port, password, process id and log. Each server has a StateDir of its own.
	StateDir string
	// RepoDir is the working tree, or bare repository, to serve.
	RepoDir string
	// Listen is the address to bind.
	Listen netip.Addr
	// Host is the name or address by which clients reach the server. Empty means the one in StateDir.
	Host string
	// Started means that the caller only starts the server again and cannot give Flux another password or authority. A server that an older
	// version made without TLS then stays without TLS.
	Started bool
	// Port to listen on. 0 means the port in StateDir, or else a free port, which is then written to StateDir.
	Port int
	// Executable and Args are a command that calls Run with StateDir, and with its own standard output as hello.
	Executable string
	Args       []string
}

// Endpoint is what a client needs to reach the server.
type Endpoint struct {
	// Port it listens on.
	Port int
	// Username and Password that the server asks for. They stay the same until the state folder gets another authority.
	Username, Password string
	// CA is the authority of the server's certificate, in PEM. Flux sends the password only to a server with a certificate of this
	// authority. Empty means a server that an older version made without TLS.
	CA string
}

// PortTakenError means that another program listens on the server's port. The server cannot take another one, because Flux knows this one.
type PortTakenError struct{ Address string }

// Error names the address.
func (e *PortTakenError) Error() string {
	return fmt.Sprintf("another program listens on %s", e.Address)
}

// Ensure makes sure that a server as in spec runs in the background. started says whether Ensure had to start it. A healthy server stays.
// A server that is dead, serves another folder or listens on another address is replaced; port and password stay. Ensure returns when the
// server answers. Errors: *PortTakenError, ErrNoRepository, the errors of CheckGit, or the error that the server reported when it ended.
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

// secure makes a certificate authority if the state has none, or if the authority expires within authorityLeft. It also makes a new
// password: over connections without TLS, every user of this machine could have read the old password. A server that runs with the old
// state then counts as unhealthy, so Ensure replaces it.
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

// start runs the server and waits until it reports that it listens. It writes the state twice: first for the server to read, and then with
// the port that the server listens on.
func (s *state) start(ctx context.Context, spec Spec) error {
	// Remove the process id of the last server, so that nobody takes it for the new server's process id.
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
		_ = cmd.Process.Kill() // nobody has waited for the child yet, so no other process can have its id
		_ = cmd.Wait()
		return err
	}
	if err := cmd.Process.Release(); err != nil {
		return err
	}
	s.Port = hello.Port
	return s.write(spec.StateDir)
}

// hello is the line that a server prints when it listens, or when it has failed to listen.
type hello struct {
	Port  int    `json:"port,omitempty"`
	Error string `json:"error,omitempty"`
	// Taken is the address to listen on, where Error is that another program listens there.
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

// childEnvironment is the part of this process's environment that the server gets.
func childEnvironment() []string {
	return background.Environment("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "LANG", "TZ")
}

// Stop ends the background server of a state folder and returns when its process has ended. It is no error if no server runs. Port and
// password stay in the folder for the next Ensure.
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

// end asks the server to end, and kills a server that does not. It signals the process id only while the server holds its lock, so it
// cannot signal another process.
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
		} // else the server is starting and has not written its process id yet
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

// ServerStatus describes the server of a state folder.
type ServerStatus struct {
	// Running means that the server's process lives. Healthy means that it answers requests with the settings of the state folder.
	Running, Healthy bool
	// TLS means that the server has a certificate, which Flux checks. A server that an older version made has none until the next init.
	TLS bool
	// PID is the server's process id, 0 without one.
	PID int
	// RepoDir, Listen and Port belong to the running server, or else to the last one.
	RepoDir string
	Listen  netip.Addr
	Port    int
}

// Status reads the state folder and asks its server, and changes nothing. It needs no lock. Without a server, all fields are zero.
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

// acquire makes the state folder if it is missing, and locks the folder against other fleetctl processes. It returns the unlock function.
func acquire(ctx context.Context, dir string) (func() error, error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		lock := flock.New(filepath.Join(dir, lockFile))
		_, err := lock.TryLockContext(ctx, lockPoll)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process removed the folder after MkdirAll
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
