package gitrepo_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		url      string
		protocol gitrepo.Protocol
		addr     string
		err      bool
	}{
		{url: "https://example.com/org/fleet.git", protocol: gitrepo.ProtocolHTTPS},
		{url: "http://127.0.0.1:8080/fleet", protocol: gitrepo.ProtocolHTTP},
		{url: "ssh://git@example.com/org/fleet", protocol: gitrepo.ProtocolSSH, addr: "example.com:22"},
		{url: "ssh://git@example.com:2222/org/fleet", protocol: gitrepo.ProtocolSSH, addr: "example.com:2222"},
		{url: "git@example.com:org/fleet.git", protocol: gitrepo.ProtocolSSH, addr: "example.com:22"},
		{url: "ssh://git@[::1]:2222/fleet", protocol: gitrepo.ProtocolSSH, addr: "[::1]:2222"},
		{url: "https://me:s3cret@example.com/fleet", err: true},
		{url: "https://me:s3cret%zz@example.com/fleet", err: true},
		{url: "git://example.com/fleet", err: true},
		{url: "file:///srv/fleet", err: true},
		{url: "/srv/fleet", err: true},
		{url: "https://example.com", err: true},
		{url: "", err: true},
	} {
		protocol, addr, err := gitrepo.ParseURL(c.url)
		if c.err {
			if !errors.Is(err, gitrepo.ErrURL) {
				t.Errorf("ParseURL(%q): error %v, want ErrURL", c.url, err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("ParseURL(%q): the error has the password in it: %v", c.url, err)
			}
			continue
		}
		if err != nil || protocol != c.protocol || addr != c.addr {
			t.Errorf("ParseURL(%q) = %s, %q, %v; want %s, %q", c.url, protocol, addr, err, c.protocol, c.addr)
		}
	}
}

func TestProbe(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	state, err := gitrepo.Probe(t.Context(), s.URL, tokenAuth(s), "main")
	if err != nil || !state.Empty || state.BranchExists {
		t.Fatalf("empty: %+v, %v", state, err)
	}
	head := s.Seed(t, "main", map[string]string{"a": "1"})
	state, err = gitrepo.Probe(t.Context(), s.URL, tokenAuth(s), "main")
	if err != nil || state.Empty || !state.BranchExists || state.Head != head || state.DefaultBranch != "main" {
		t.Fatalf("with a commit: %+v, %v", state, err)
	}
	state, err = gitrepo.Probe(t.Context(), s.URL, tokenAuth(s), "other")
	if err != nil || state.Empty || state.BranchExists {
		t.Fatalf("other branch: %+v, %v", state, err)
	}
}

func TestProbeErrors(t *testing.T) {
	s := gittest.NewHTTPS(t, gittest.Options{})
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deadURL := "https://" + dead.Addr().String() + "/x.git"
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	plain, _ := strings.CutPrefix(s.URL, "https://")
	for name, c := range map[string]struct {
		url  string
		auth gitrepo.Auth
		want error
	}{
		"wrong token":      {s.URL, gitrepo.Auth{Username: s.Username, Token: "wr0ng", CA: s.CA}, gitrepo.ErrAuth},
		"no token":         {s.URL, gitrepo.Auth{CA: s.CA}, gitrepo.ErrAuth},
		"no such repo":     {strings.Replace(s.URL, "fleet", "other", 1), tokenAuth(s), gitrepo.ErrNotFound},
		"unknown CA":       {s.URL, gitrepo.Auth{Username: s.Username, Token: s.Token}, gitrepo.ErrTLS},
		"broken CA":        {s.URL, gitrepo.Auth{CA: []byte("nonsense")}, gitrepo.ErrTLS},
		"nobody listens":   {deadURL, tokenAuth(s), gitrepo.ErrNetwork},
		"no such host":     {"https://fleetctl.invalid/x.git", tokenAuth(s), gitrepo.ErrNetwork},
		"token over http":  {"http://example.com/fleet.git", tokenAuth(s), gitrepo.ErrURL},
		"ssh to no server": {"ssh://git@" + dead.Addr().String() + "/x", gitrepo.Auth{}, gitrepo.ErrNetwork},
		"ssh to https":     {"ssh://git@" + plain, gitrepo.Auth{}, gitrepo.ErrNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gitrepo.Probe(t.Context(), c.url, c.auth, "main")
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if diag.Hint(err) == "" {
				t.Errorf("no hint in %v", err)
			}
			if text := err.Error() + diag.Hint(err); strings.Contains(text, s.Token) || strings.Contains(text, "wr0ng") {
				t.Errorf("the token is in %q", text)
			}
		})
	}
}

// A server that accepts connections and says nothing must not hold up a cancelled context: Ctrl-C returns in two seconds.
func TestProbeCancelled(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	for _, url := range []string{"ssh://git@" + mute.Addr().String() + "/x", "https://" + mute.Addr().String() + "/x"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		began := time.Now()
		_, err = gitrepo.Probe(ctx, url, gitrepo.Auth{}, "main")
		if !errors.Is(err, context.Canceled) || time.Since(began) > 2*time.Second {
			t.Errorf("%s: %v after %s", url, err, time.Since(began))
		}
	}
}

func TestHostKeys(t *testing.T) {
	s := gittest.NewSSH(t, gittest.Options{})
	s.Seed(t, "main", map[string]string{"a": "1"})
	auth := sshAuth(t, s, false)
	lines := strings.SplitAfter(strings.TrimSpace(s.KnownHosts), "\n")
	if len(lines) != 2 {
		t.Fatalf("want two host keys, got %q", s.KnownHosts)
	}
	probe := func(a gitrepo.Auth) error {
		_, err := gitrepo.Probe(t.Context(), s.URL, a, "main")
		return err
	}
	// With one of the two keys known, the other must not be asked for (go-git #1341, #1551).
	for _, line := range lines {
		if err := probe(gitrepo.Auth{Key: auth.Key, KnownHosts: line}); err != nil {
			t.Errorf("only %q known: %v", line, err)
		}
	}

	var unknown *gitrepo.HostKeyError
	err := probe(gitrepo.Auth{Key: auth.Key})
	if !errors.As(err, &unknown) || !errors.Is(err, gitrepo.ErrHostKey) || diag.Hint(err) == "" {
		t.Fatalf("unknown host: %v", err)
	}
	if !strings.Contains(s.KnownHosts, unknown.Line+"\n") || !strings.HasPrefix(unknown.Fingerprint, "SHA256:") ||
		unknown.KeyType != "ssh-ed25519" {
		t.Errorf("unknown host: %+v, want a line of %q", unknown, s.KnownHosts)
	}
	if err := probe(gitrepo.Auth{Key: auth.Key, KnownHosts: unknown.Line}); err != nil {
		t.Errorf("with the line of the error: %v", err)
	}
	if err := probe(gitrepo.Auth{Key: auth.Key, KnownHosts: "nonsense"}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("malformed known hosts: %v", err)
	}

	s.RotateHostKeys()
	var changed *gitrepo.HostKeyChangedError
	if err := probe(auth); !errors.As(err, &changed) || !errors.Is(err, gitrepo.ErrHostKey) || changed.Fingerprint == "" ||
		len(changed.Known) != 2 {
		t.Errorf("changed host key: %v", err)
	}
	rsa := strings.Fields(lines[0])[0] + " ssh-rsa " + rsaKey + "\n"
	if err := probe(gitrepo.Auth{Key: auth.Key, KnownHosts: rsa}); !errors.As(err, &changed) {
		t.Errorf("no key of a known type: %v", err)
	}
}

// rsaKey is a public key of nobody's.
const rsaKey = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDJhO8HDiRX/KkVYXT6xpg8cmAf9w6dHQN6JHkKO0xWZ0N9cVZx1dOHcKp6ZaOt3+1cSYrg8dWOoS5eoHUgPvPZo6lLQvBfYXyS6JmH2nSCrKtIvyNjYSG5DdJb3Yz7qX5oJ6w3aJxK0vYdX0v1uF3n7pWq7bPZ2uTm5Q0n2Q8Q6w=="

func TestUserKnownHosts(t *testing.T) {
	s := gittest.NewSSH(t, gittest.Options{})
	auth := sshAuth(t, s, true)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, ".ssh/known_hosts", "# mine\nthis line is broken\n"+s.KnownHosts)
	t.Cleanup(func() { _ = os.Remove(filepath.Join(home, ".ssh", "known_hosts")) })
	user := gitrepo.Auth{Key: auth.Key, UserKnownHosts: true}
	if _, err := gitrepo.Probe(t.Context(), s.URL, user, "main"); err != nil {
		t.Errorf("host known to the user: %v", err)
	}
	lines, err := gitrepo.TrustedHostKeys(s.URL, user)
	if err != nil || lines != s.KnownHosts {
		t.Errorf("TrustedHostKeys = %q, %v; want %q", lines, err, s.KnownHosts)
	}
	if lines, err = gitrepo.TrustedHostKeys(s.URL, gitrepo.Auth{}); err != nil || lines != "" {
		t.Errorf("TrustedHostKeys of nobody = %q, %v", lines, err)
	}
	// What is pinned goes before what the user happens to know.
	other := gittest.NewSSH(t, gittest.Options{})
	_, key, _ := strings.Cut(other.KnownHosts, " ")
	host, _, _ := strings.Cut(s.KnownHosts, " ")
	user.KnownHosts = host + " " + key
	var changed *gitrepo.HostKeyChangedError
	if _, err := gitrepo.Probe(t.Context(), s.URL, user, "main"); !errors.As(err, &changed) {
		t.Errorf("pinned to another key: %v", err)
	}
}

func TestSSHAuth(t *testing.T) {
	s := gittest.NewSSH(t, gittest.Options{})
	s.Seed(t, "main", map[string]string{"a": "1"})
	stranger, err := gitrepo.GenerateDeployKey("stranger")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gitrepo.Probe(t.Context(), s.URL, gitrepo.Auth{Key: stranger.Private, KnownHosts: s.KnownHosts},
		"main"); !errors.Is(err, gitrepo.ErrAuth) {
		t.Errorf("unknown key: %v, want ErrAuth", err)
	}
	if _, err := gitrepo.Probe(t.Context(), s.URL, gitrepo.Auth{KnownHosts: s.KnownHosts}, "main"); !errors.Is(err, gitrepo.ErrAuth) {
		t.Errorf("no key at all: %v, want ErrAuth", err)
	}
	auth := sshAuth(t, s, false)
	if _, err := gitrepo.Probe(t.Context(), s.URL+"-not", auth, "main"); !errors.Is(err, gitrepo.ErrNotFound) {
		t.Errorf("no such repository: %v, want ErrNotFound", err)
	}
}

func TestEncryptedKey(t *testing.T) {
	s := gittest.NewSSH(t, gittest.Options{})
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open sesame")) // as ssh-keygen writes it
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "id")
	write(t, dir, "id", string(pem.EncodeToMemory(block)))
	known, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	s.AuthorizeKey(string(ssh.MarshalAuthorizedKey(known)), true)
	auth := gitrepo.Auth{KeyFile: path, KnownHosts: s.KnownHosts}
	var locked *gitrepo.PassphraseError
	if _, err := gitrepo.Probe(t.Context(), s.URL, auth, "main"); !errors.As(err, &locked) || locked.Name != path {
		t.Errorf("nobody to ask: %v", err)
	}
	auth.Passphrase = func(string) ([]byte, error) { return []byte("open sesame"), nil }
	if _, err := gitrepo.Probe(t.Context(), s.URL, auth, "main"); err != nil {
		t.Errorf("with the passphrase: %v", err)
	}
	auth.Passphrase = func(string) ([]byte, error) { return []byte("wr0ng"), nil }
	if _, err := gitrepo.Probe(t.Context(), s.URL, auth, "main"); err == nil || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("with a wrong passphrase: %v", err)
	}
}

func TestDeployKey(t *testing.T) {
	key, err := gitrepo.GenerateDeployKey("fleetctl: my fleet")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(key.Public, "ssh-ed25519 ") || !strings.HasSuffix(key.Public, " fleetctl:-my-fleet\n") {
		t.Errorf("public half %q", key.Public)
	}
	again, err := gitrepo.ParseDeployKey(key.Private, "fleetctl:-my-fleet")
	if err != nil || again.Public != key.Public || again.Fingerprint != key.Fingerprint {
		t.Errorf("parsed again: %+v, %v", again, err)
	}
}
