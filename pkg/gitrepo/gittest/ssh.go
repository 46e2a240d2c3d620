package gittest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH is a running SSH server that offers one Git repository.
type SSH struct {
	*Repo
	// URL of the repository.
	URL string
	// Addr is host:port as clients use it.
	Addr string
	// KnownHosts are the lines for known_hosts, one for each host key.
	KnownHosts string
	// Answer serves sessions in place of git, for a server that is hostile; service is git-upload-pack or git-receive-pack. NewSSH's server
	// only, and set before anybody connects.
	Answer func(service string, session io.ReadWriter)

	t       testing.TB
	backend sshBackend

	lock    sync.Mutex // of what follows: sessions read it
	hosts   []crypto.Signer
	allowed []authorized
}

// sshBackend is the program that speaks SSH: this one's own, or OpenSSH.
type sshBackend interface {
	// hostKeysChanged and authorizedChanged take effect for who connects from now on.
	hostKeysChanged(s *SSH)
	authorizedChanged(s *SSH)
}

// authorized is a key that may log in.
type authorized struct {
	key      ssh.PublicKey
	readOnly bool
}

// NewSSH starts a server that needs no program but git. Nobody may log in until AuthorizeKey. It ends with the test.
func NewSSH(t testing.TB, opts Options) *SSH {
	t.Helper()
	opts = opts.withDefaults(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", opts.Listen)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	s := newSSH(t, opts, "git", listener.Addr().String())
	server := &sshServer{listener: listener, open: map[net.Conn]bool{}}
	s.backend = server
	server.serve(s)
	t.Cleanup(server.close)
	return s
}

// newSSH is a server with host keys that nothing serves yet.
func newSSH(t testing.TB, opts Options, user, listen string) *SSH {
	t.Helper()
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	s := &SSH{Repo: NewRepo(t, opts), t: t, Addr: net.JoinHostPort(opts.Host, port)}
	s.URL = "ssh://" + user + "@" + s.Addr + s.Dir
	s.newHostKeys()
	return s
}

// AuthorizeKey lets the holder of a public key (a line for authorized_keys) read the repository, and write unless readOnly.
func (s *SSH) AuthorizeKey(public string, readOnly bool) {
	s.t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(public)) //nolint:dogsled // a comment, options and a rest that nobody needs
	if err != nil {
		s.t.Fatalf("gittest: authorize %q: %v", public, err)
	}
	s.lock.Lock()
	s.allowed = append(s.allowed, authorized{key, readOnly})
	s.lock.Unlock()
	s.backend.authorizedChanged(s)
}

// RotateHostKeys gives the server new host keys, as an attacker or a reinstalled machine would show them. KnownHosts has the new ones;
// what was read from it before no longer fits.
func (s *SSH) RotateHostKeys() {
	s.t.Helper()
	s.newHostKeys()
	s.backend.hostKeysChanged(s)
}

// newHostKeys makes two, of different types: clients have to cope with knowing only one of them.
func (s *SSH) newHostKeys() {
	s.t.Helper()
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	var lines strings.Builder
	hosts := []crypto.Signer{edwards, newKey(s.t)}
	for _, key := range hosts {
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			s.t.Fatalf("gittest: %v", err)
		}
		lines.WriteString(knownhosts.Line([]string{knownhosts.Normalize(s.Addr)}, public) + "\n")
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.hosts, s.KnownHosts = hosts, lines.String()
}

// service is the Git service that a command asks for, if this is what the key may do with this repository. Else it is what to answer, with
// the words of a forge.
func (s *SSH) service(command string, readOnly bool) (service, refusal string) {
	switch command {
	case "git-upload-pack '" + s.Dir + "'":
		return "upload-pack", ""
	case "git-receive-pack '" + s.Dir + "'":
		if readOnly {
			return "", keyReadOnly
		}
		return "receive-pack", ""
	default:
		return "", noRepository
	}
}

const (
	noRepository = "ERROR: Repository not found."
	keyReadOnly  = "ERROR: The key you are authenticating with has been marked as read only."
)
