package gitserve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// The files in a state folder. Everything that must outlive the server is in stateFile.
const (
	stateFile = "git-serve.json" // what to serve, the port and the password: 0600
	pidFile   = "git-serve.pid"  // of the holder of aliveFile
	logFile   = "git-serve.log"
	aliveFile = "git-serve.alive" // locked by the server while it lives; the kernel unlocks it when it dies
	lockFile  = "git-serve.lock"  // locked while one of Ensure, Stop and Status works

	private = 0o600 // their permissions

	username       = "fleetctl"
	identityHeader = "Fleetctl-Identity"
)

// state is what the background server is told, and what is kept for the next one.
type state struct {
	RepoDir  string     `json:"repoDir"`
	Listen   netip.Addr `json:"listen"`
	Port     int        `json:"port"`
	Username string     `json:"username"`
	Password string     `json:"password"`
	// Host is the name or address that Flux knows the server by.
	Host string `json:"host,omitempty"`
	// Authority has signed the certificate that clients ask the server for. nil: the server is one from before, without TLS, which Flux still
	// reads; the next init gives it one.
	Authority *authority `json:"authority,omitempty"`
}

func (s *state) address() string { return net.JoinHostPort(s.Listen.String(), strconv.Itoa(s.Port)) }

// identity tells a server that was started with this state from one that was started with another.
func (s *state) identity() string {
	parts := []string{s.RepoDir, s.Listen.String(), s.Username, s.Password}
	if s.Authority != nil {
		parts = append(parts, s.Host, s.Authority.Certificate)
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(digest[:])
}

func newState() *state { return &state{Username: username, Password: rand.Text()} }

// errDamaged is for a state that says nothing, as a power cut may leave it. A new one loses only the port and the password, which Flux gets
// again.
var errDamaged = errors.New("it is damaged")

// readState returns fs.ErrNotExist if there is none.
func readState(dir string) (*state, error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, err
	}
	s := &state{}
	if err := json.Unmarshal(content, s); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", filepath.Join(dir, stateFile), errDamaged, err)
	}
	return s, nil
}

func (s *state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ") //nolint:gosec // the file is where the password is kept, 0600
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, stateFile), append(content, '\n'), private)
}

// alive says whether the server of dir runs. Unlike a process id, the lock cannot be somebody else's.
func alive(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, aliveFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(filepath.Join(dir, aliveFile))
	free, err := lock.TryRLock() // shared: two that look at once do not take each other for the server
	if err != nil {
		return false, fmt.Errorf("look whether the git server of %s runs: %w", dir, err)
	}
	if free {
		return false, lock.Unlock()
	}
	return true, lock.Close()
}

// waitDead returns when the server of dir has ended, with whatever error ctx has if that is first.
func waitDead(ctx context.Context, dir string) error {
	const poll = 20 * time.Millisecond // the end of a process that is no child of ours cannot be waited for portably
	lock := flock.New(filepath.Join(dir, aliveFile))
	if _, err := lock.TryRLockContext(ctx, poll); err != nil {
		return err
	}
	return lock.Unlock()
}

// readPID is the process id of the server; 0 if it has not written one yet.
func readPID(dir string) (int, error) {
	content, err := os.ReadFile(filepath.Join(dir, pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}

// healthy says whether a server answers that was started with this state. Only one whose certificate shows that it is ours hears the
// password. Who asks has seen that a server of ours runs (alive): whoever else has bound its port is not even spoken to.
func (s *state) healthy(ctx context.Context) bool {
	const timeout = 3 * time.Second
	if s.Port == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if s.Authority == nil {
		return s.answers(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.reachable()+healthPath, nil)
	if err != nil {
		return false
	}
	req.SetBasicAuth(s.Username, s.Password)
	client := &http.Client{ // no proxy: this is our own machine
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.Authority.client()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusNoContent && res.Header.Get(identityHeader) == s.identity()
}

// answers says whether something listens where the server should. Without TLS nobody can tell who it is: it hears nothing.
func (s *state) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.reachable())
	return err == nil && conn.Close() == nil
}

// reachable is the address for a client on this machine.
func (s *state) reachable() string {
	host := s.Listen
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if s.Listen.Is6() {
			host = netip.IPv6Loopback()
		}
	}
	return net.JoinHostPort(host.String(), strconv.Itoa(s.Port))
}
