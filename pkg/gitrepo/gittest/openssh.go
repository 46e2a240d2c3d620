package gittest

import (
	"bufio"
	"context"
	"crypto"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// openSSH is the sshd of this machine.
type openSSH struct {
	listen string
	config string // the folder with keys and configuration
	stop   func()
}

// NewOpenSSH is NewSSH with OpenSSH's own server, which has to be installed, and with the user that runs the test.
func NewOpenSSH(t testing.TB, opts Options) *SSH {
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
	b := &openSSH{listen: net.JoinHostPort(host, port), config: t.TempDir()}
	s := newSSH(t, opts, me.Username, b.listen)
	s.backend = b
	b.writeConfig(t)
	b.writeGate(s)
	b.writeHostKeys(s)
	b.authorizedChanged(s)
	b.start(t)
	t.Cleanup(func() { b.stop() })
	return s
}

func (b *openSSH) hostKeysChanged(s *SSH) {
	b.stop()
	b.writeHostKeys(s)
	b.start(s.t)
}

func (b *openSSH) authorizedChanged(s *SSH) {
	var lines strings.Builder
	for _, a := range s.allowed {
		lines.WriteString("restrict,command=\"" + filepath.Join(b.config, "gate") + " " + strconv.FormatBool(a.readOnly) + "\" " +
			string(ssh.MarshalAuthorizedKey(a.key)))
	}
	b.write(s.t, "authorized_keys", lines.String())
}

// writeGate makes the program that a key is confined to: SSH.service as a script.
func (b *openSSH) writeGate(s *SSH) {
	b.write(s.t, "gate", `#!/bin/sh
export `+strings.Join(Environment(), " ")+`
case "$1 $SSH_ORIGINAL_COMMAND" in
"false git-receive-pack '`+s.Dir+`'") exec git receive-pack '`+s.Dir+`' ;;
"true git-receive-pack '`+s.Dir+`'") echo "`+keyReadOnly+`" >&2 ;;
*" git-upload-pack '`+s.Dir+`'") exec git upload-pack '`+s.Dir+`' ;;
*) echo "`+noRepository+`" >&2 ;;
esac
exit 1
`)
	if err := os.Chmod(filepath.Join(b.config, "gate"), 0o700); err != nil {
		s.t.Fatalf("gittest: %v", err)
	}
}

func (b *openSSH) writeConfig(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(b.listen)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	b.write(t, "sshd_config", strings.Join([]string{
		"ListenAddress " + host, "Port " + port,
		"HostKey " + filepath.Join(b.config, "host_0"), "HostKey " + filepath.Join(b.config, "host_1"),
		"AuthorizedKeysFile " + filepath.Join(b.config, "authorized_keys"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password", "MaxStartups 100", "MaxAuthTries 20", "",
	}, "\n"))
}

func (b *openSSH) writeHostKeys(s *SSH) {
	for i, key := range s.hosts {
		block, err := ssh.MarshalPrivateKey(crypto.PrivateKey(key), "gittest")
		if err != nil {
			s.t.Fatalf("gittest: %v", err)
		}
		b.write(s.t, "host_"+strconv.Itoa(i), string(pem.EncodeToMemory(block)))
	}
}

func (b *openSSH) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.config, name), []byte(content), 0o600); err != nil {
		t.Fatalf("gittest: %v", err)
	}
}

// start runs sshd and returns when it says that it listens.
func (b *openSSH) start(t testing.TB) {
	t.Helper()
	path := Require(t, "sshd", "openssh-server")
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatalf("gittest: %v", err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "-D", "-e", "-f", filepath.Join(b.config, "sshd_config"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("gittest: start sshd: %v", err)
	}
	ended := make(chan struct{})
	listening := make(chan string, 1)
	go func() {
		defer close(ended)
		listening <- waitListening(stderr)
		_, _ = io.Copy(io.Discard, stderr) // sshd must not block on a full pipe
		_ = cmd.Wait()
	}()
	b.stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	select {
	case problem := <-listening:
		if problem != "" {
			b.stop()
			t.Fatalf("gittest: sshd does not start: %s", problem)
		}
	case <-time.After(20 * time.Second):
		b.stop()
		t.Fatalf("gittest: sshd does not start")
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
