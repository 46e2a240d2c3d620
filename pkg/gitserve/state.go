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

// The files in a state folder. All that the next server needs to know is in stateFile.
const (
	stateFile = "git-serve.json" // what to serve, the port and the password: 0600
	pidFile   = "git-serve.pid"  // of the holder of aliveFile
	logFile   = "git-serve.log"
	aliveFile = "git-serve.alive" // locked by the server while it lives; the kernel unlocks it when it dies
	lockFile  = "git-serve.lock"  // locked while Ensure or Stop works

	private = 0o600 // mode of these files

	username       = "fleetctl"
	identityHeader = "Fleetctl-Identity"
)

// state has the settings that the background server reads when it starts. They stay for the next server.
type state struct {
	RepoDir  string     `json:"repoDir"`
	Listen   netip.Addr `json:"listen"`
	Port     int        `json:"port"`
	Username string     `json:"username"`
	Password string     `json:"password"`
	// Host is the name or address by which Flux reaches the server.
	Host string `json:"host,omitempty"`
	// Authority signs the server's certificate. nil means a server that an older version made without TLS. Flux reads from it until the
	// next init, which makes an authority.
	Authority *authority `json:"authority,omitempty"`
}

func (s *state) address() string { return net.JoinHostPort(s.Listen.String(), strconv.Itoa(s.Port)) }

// identity is a digest of the state. It tells a server that was started with this state from a server with another state.
func (s *state) identity() string {
	parts := []string{s.RepoDir, s.Listen.String(), s.Username, s.Password}
	if s.Authority != nil {
		parts = append(parts, s.Host, s.Authority.Certificate)
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(digest[:])
}

func newState() *state { return &state{Username: username, Password: rand.Text()} }

// errDamaged means a state file that cannot be parsed, as a power cut may leave it. A new state loses only port and password, and Ensure's
// caller gives these to Flux again.
var errDamaged = errors.New("it is damaged")

// readState reads the state of the folder dir. Errors: fs.ErrNotExist if the folder has no state, errDamaged.
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

// alive says whether the server of dir runs. It looks at the server's lock, because another process may have the server's old id.
func alive(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, aliveFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(filepath.Join(dir, aliveFile))
	free, err := lock.TryRLock() // shared, so that two calls of alive do not take each other for the server
	if err != nil {
		return false, fmt.Errorf("look whether the git server of %s runs: %w", dir, err)
	}
	if free {
		return false, lock.Unlock()
	}
	return true, lock.Close()
}

// waitDead returns when the server of dir has ended, or ctx's error if ctx ends first.
func waitDead(ctx context.Context, dir string) error {
	const poll = 20 * time.Millisecond // polled: no portable call waits for a process that is not a child
	lock := flock.New(filepath.Join(dir, aliveFile))
	if _, err := lock.TryRLockContext(ctx, poll); err != nil {
		return err
	}
	return lock.Unlock()
}

// readPID returns the process id of the server, 0 if the server has not written it yet.
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

// healthy says whether a server that was started with this state answers. The password goes only to a server with a certificate of the
// state's authority. Callers check alive first, so that fleetctl does not connect to another program on the port of a dead server.
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
	client := &http.Client{ // without a proxy: the server is on this machine
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.Authority.client()},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusNoContent && res.Header.Get(identityHeader) == s.identity()
}

// answers says whether a program listens on the server's address. It sends nothing, because without TLS it cannot tell which program this
// is.
func (s *state) answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.reachable())
	return err == nil && conn.Close() == nil
}

// reachable is the server's address for a client on this machine, as HOST:PORT.
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
