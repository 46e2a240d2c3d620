package gitrepo

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// Auth has the credentials for a remote, and the certificates and host keys by which fleetctl recognises it. The protocol of the URL
// decides which fields are used. The zero value means https without credentials, or ssh with the user's agent, the default keys and no
// known host.
type Auth struct {
	// Username that goes with Token. Default: the user in the URL, else "git".
	Username string
	// Token for https. It is never written anywhere.
	Token string
	// CA are PEM certificates of authorities that are trusted in addition to the system's.
	CA []byte

	// Key is a private SSH key (PEM); if set, no other key is tried.
	Key []byte
	// KeyFile is the path of a private SSH key; if set, no other key is tried. With neither Key nor KeyFile, the keys of the
	// user's agent are tried, then ~/.ssh/id_ed25519, id_ecdsa and id_rsa.
	KeyFile string
	// Passphrase is asked for the passphrase of an encrypted key; name is its path. nil: an encrypted key is an error.
	Passphrase func(name string) ([]byte, error)
	// KnownHosts are lines as in a known_hosts file that pin the host keys.
	KnownHosts string
	// UserKnownHosts says to look into ~/.ssh/known_hosts for a host that KnownHosts has nothing about.
	UserKnownHosts bool
}

// PassphraseError says that a private key is encrypted, and that fleetctl could ask nobody for its passphrase.
type PassphraseError struct {
	// Name is the path of the key.
	Name string
}

// Error names the key.
func (e *PassphraseError) Error() string { return fmt.Sprintf("the ssh key %s is encrypted", e.Name) }

// secrets returns the strings that must not appear in an error, the longest first. user is the user name that belongs to the token.
func (a Auth) secrets(user string) []string {
	if a.Token == "" {
		return nil
	}
	return []string{base64.StdEncoding.EncodeToString([]byte(user + ":" + a.Token)), a.Token}
}

// user returns the user name that belongs to the token for ep.
func (a Auth) user(ep *transport.Endpoint) string {
	return cmp.Or(a.Username, ep.User, gitssh.DefaultUsername)
}

// httpTransport returns a client for ep over http or https, and the credentials for it.
func (a Auth) httpTransport(ep *transport.Endpoint) (transport.Transport, transport.AuthMethod, error) {
	rt, found := sameorigin.NewTransport(a.CA)
	if len(a.CA) > 0 && !found {
		return nil, nil, diag.Errorf("give PEM files that begin with -----BEGIN CERTIFICATE-----",
			"%w: no certificate found in the given authorities", ErrTLS)
	}
	if a.Token == "" {
		return githttp.NewClient(&http.Client{Transport: boundAnswers(sameorigin.Download(contact.Transport(rt)))}), nil, nil
	}
	if Protocol(ep.Protocol) == ProtocolHTTP && !sameorigin.IsLoopback(trimBrackets(ep.Host)) {
		return nil, nil, diag.Errorf("use the https URL of the repository",
			"%w: fleetctl does not send a token over http, which is not encrypted", ErrURL)
	}
	// The bounds are the outermost layer. Otherwise they could cut a credential that an answer repeats, and sameorigin would not find it.
	client := githttp.NewClient(&http.Client{Transport: boundAnswers(sameorigin.Bind(contact.Transport(rt), serverOf(ep)))})
	return client, &githttp.BasicAuth{Username: a.user(ep), Password: a.Token}, nil
}

// signers returns the SSH keys to offer: the given key, or else the keys of the agent and then the default keys.
func (a Auth) signers(user string) ([]ssh.Signer, error) {
	switch {
	case len(a.Key) > 0:
		return one(a.parseKey("given", a.Key))
	case a.KeyFile != "":
		return one(a.readKey(a.KeyFile))
	}
	signers := agentSigners(user)
	home, err := os.UserHomeDir()
	if err != nil {
		return signers, nil //nolint:nilerr // without a home there are no default keys
	}
	var locked error
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		signer, err := a.readKey(filepath.Join(home, ".ssh", name))
		var passphrase *PassphraseError
		switch {
		case errors.Is(err, os.ErrNotExist):
		case errors.As(err, &passphrase):
			locked = err
		case err == nil:
			signers = append(signers, signer)
		}
	}
	if len(signers) == 0 && locked != nil {
		return nil, locked
	}
	return signers, nil
}

// agentSigners returns the keys of the user's agent. Without an agent, it returns none.
func agentSigners(user string) []ssh.Signer {
	agent, err := gitssh.NewSSHAgentAuth(user)
	if err != nil {
		return nil
	}
	signers, err := agent.Callback()
	if err != nil {
		return nil
	}
	return signers
}

func one(s ssh.Signer, err error) ([]ssh.Signer, error) {
	if err != nil {
		return nil, err
	}
	return []ssh.Signer{s}, nil
}

func (a Auth) readKey(path string) (ssh.Signer, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return a.parseKey(path, pem)
}

func (a Auth) parseKey(name string, pem []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(pem)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); !ok {
		if err != nil {
			return nil, fmt.Errorf("read the ssh key %s: %w", name, err)
		}
		return signer, nil
	}
	if a.Passphrase == nil {
		return nil, diag.Errorf("add it to your agent: ssh-add "+name, "%w", &PassphraseError{Name: name})
	}
	passphrase, err := a.Passphrase(name)
	if err != nil {
		return nil, fmt.Errorf("ask for the passphrase of the ssh key %s: %w", name, err)
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, passphrase)
	if err != nil {
		return nil, fmt.Errorf("decrypt the ssh key %s: %w", name, err)
	}
	return signer, nil
}
