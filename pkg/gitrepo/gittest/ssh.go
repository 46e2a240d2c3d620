package gittest

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH is a running OpenSSH server that offers one Git repository.
type SSH struct {
	*Repo
	// URL of the repository.
	URL string
	// Addr is host:port as clients use it.
	Addr string
	// KnownHosts are the lines for known_hosts, one for each host key.
	KnownHosts string

	t      testing.TB
	listen string
	config string // the folder with keys and configuration
	stop   func()
}

// NewSSH starts a server. Nobody may log in until AuthorizeKey. It ends with the test.
func NewSSH(t testing.TB, opts Options) *SSH {
	t.Helper()
	opts = opts.withDefaults(t)
	host, port, err := net.SplitHostPort(opts.Listen)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	if port == "0" {
		port = freePort(t, host)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	s := &SSH{Repo: NewRepo(t, opts), t: t, config: t.TempDir(), listen: net.JoinHostPort(host, port), Addr: net.JoinHostPort(opts.Host, port)}
	s.URL = "ssh://" + me.Username + "@" + s.Addr + s.Dir
	s.write("authorized_keys", "")
	s.writeConfig()
	s.writeHostKeys()
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// AuthorizeKey lets the holder of a public key (a line for authorized_keys) read the repository, and write unless readOnly.
func (s *SSH) AuthorizeKey(public string, readOnly bool) {
	s.t.Helper()
	allowed := "git-upload-pack|git-receive-pack"
	if readOnly {
		allowed = "git-upload-pack"
	}
	f, err := os.OpenFile(filepath.Join(s.config, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	_, err = fmt.Fprintf(f, "restrict,command=\"%s '%s'\" %s\n", s.gate(), allowed, strings.TrimSpace(public))
	if err != nil || f.Close() != nil {
		s.t.Fatalf("gittest: write authorized_keys: %v", err)
	}
}

// RotateHostKeys gives the server new host keys, as an attacker or a reinstalled machine would show them, and restarts it.
// KnownHosts has the new ones; what was read from it before no longer fits.
func (s *SSH) RotateHostKeys() {
	s.t.Helper()
	s.stop()
	s.writeHostKeys()
	s.start()
}

// gate is the program that a key is confined to: it lets the allowed Git services through, for this repository only.
func (s *SSH) gate() string {
	path := filepath.Join(s.config, "gate")
	script := `#!/bin/sh
export ` + strings.Join(Environment(), " ") + `
case "$SSH_ORIGINAL_COMMAND" in
"git-upload-pack '` + s.Dir + `'") service=git-upload-pack ;;
"git-receive-pack '` + s.Dir + `'") service=git-receive-pack ;;
*) echo "ERROR: Repository not found." >&2; exit 1 ;;
esac
case "|$1|" in
*"|$service|"*) exec git "${service#git-}" '` + s.Dir + `' ;;
esac
echo "ERROR: The key you are authenticating with has been marked as read only." >&2
exit 1
`
	s.write("gate", script)
	if err := os.Chmod(path, 0o700); err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	return path
}

func (s *SSH) writeConfig() {
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	s.write("sshd_config", strings.Join([]string{
		"ListenAddress " + host, "Port " + port,
		"HostKey " + filepath.Join(s.config, "host_ed25519"), "HostKey " + filepath.Join(s.config, "host_ecdsa"),
		"AuthorizedKeysFile " + filepath.Join(s.config, "authorized_keys"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password", "MaxStartups 100", "MaxAuthTries 20", "",
	}, "\n"))
}

func (s *SSH) writeHostKeys() {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	s.KnownHosts = s.hostKey("host_ed25519", edwards) + s.hostKey("host_ecdsa", newKey(s.t))
}

// hostKey writes a private host key and returns its line for known_hosts.
func (s *SSH) hostKey(name string, key crypto.Signer) string {
	block, err := ssh.MarshalPrivateKey(key, "gittest")
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	s.write(name, string(pem.EncodeToMemory(block)))
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	return knownhosts.Line([]string{knownhosts.Normalize(s.Addr)}, public) + "\n"
}

func (s *SSH) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.config, name), []byte(content), 0o600); err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
}

// start runs sshd and returns when it says that it listens.
func (s *SSH) start() {
	s.t.Helper()
	path := Require(s.t, "sshd", "openssh-server")
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			s.t.Fatalf("gittest: %v", err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), path, "-D", "-e", "-f", filepath.Join(s.config, "sshd_config"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("gittest: start sshd: %v", err)
	}
	ended := make(chan struct{})
	listening := make(chan string, 1)
	go func() {
		defer close(ended)
		listening <- waitListening(stderr)
		_, _ = io.Copy(io.Discard, stderr) // sshd must not block on a full pipe
		_ = cmd.Wait()
	}()
	s.stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	select {
	case problem := <-listening:
		if problem != "" {
			s.stop()
			s.t.Fatalf("gittest: sshd does not start: %s", problem)
		}
	case <-time.After(20 * time.Second):
		s.stop()
		s.t.Fatalf("gittest: sshd does not start")
	}
}

// waitListening reads what sshd says until it listens, and returns "", or all of it if it ends before that.
func waitListening(stderr io.Reader) string {
	var said []string
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Server listening on ") {
			return ""
		}
		said = append(said, lines.Text())
	}
	return "it says: " + strings.Join(said, "; ")
}

func freePort(t testing.TB, host string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil || l.Close() != nil {
		t.Fatalf("gittest: find a port: %v", err)
	}
	return port
}
