package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// connectTimeout bounds the TCP connection and the SSH handshake, for which go-git takes no context.
const connectTimeout = 45 * time.Second

// remote is a remote repository to which sessions can be opened. It uses go-git's transports directly instead of go-git's process-wide
// table of protocols, so that each remote has its own authorities, keys and pinned host keys.
type remote struct {
	endpoint  *transport.Endpoint
	transport transport.Transport
	method    transport.AuthMethod
	ssh       *sshAuth
	auth      Auth
	// pushes is the remote to which git pushes, if its address is another one.
	pushes *remote
}

// newRemote checks url and auth; it does not connect.
func newRemote(url string, auth Auth) (*remote, error) {
	ep, err := parseEndpoint(url)
	if err != nil {
		return nil, err
	}
	r := &remote{endpoint: ep, auth: auth}
	if Protocol(ep.Protocol) != ProtocolSSH {
		r.transport, r.method, err = auth.httpTransport(ep)
		return r, err
	}
	keys, err := auth.knownHostKeys(hostPort(ep))
	if err != nil {
		return nil, err
	}
	user := ep.User
	if user == "" {
		user = gitssh.DefaultUsername
	}
	r.ssh = &sshAuth{user: user, auth: auth, hosts: keys}
	r.transport, r.method = boundedSSH{gitssh.NewClient(nil)}, r.ssh
	return r, nil
}

// fail wraps err with the operation and the address of the remote, without secrets.
func (r *remote) fail(verb string, err error) error {
	secrets := r.auth.secrets(r.auth.user(r.endpoint))
	if r.ssh == nil && r.endpoint.User != "" {
		secrets = append(secrets, r.endpoint.User+"@") // the user in a URL may be a token
	}
	return remoteError(verb+" "+display(r.endpoint), err, secrets...)
}

// upload opens a session that reads; the caller closes it.
func (r *remote) upload(ctx context.Context) (transport.UploadPackSession, error) {
	return open(ctx, r, r.transport.NewUploadPackSession)
}

// receive opens a session that writes; the caller closes it.
func (r *remote) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	return open(ctx, r, r.transport.NewReceivePackSession)
}

// open calls connect, and returns at once if ctx is cancelled, because go-git dials without a context. It closes a session that is opened
// too late.
func open[S transport.Session](
	ctx context.Context,
	r *remote,
	connect func(*transport.Endpoint, transport.AuthMethod) (S, error),
) (S, error) {
	type result struct {
		session S
		err     error
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	done := make(chan result, 1)
	method := r.method
	var attempt *sshAuth
	if r.ssh != nil {
		attempt = &sshAuth{user: r.ssh.user, auth: r.ssh.auth, hosts: r.ssh.hosts}
		method = attempt
	}
	go func() {
		s, err := connect(r.endpoint, method)
		done <- result{s, err}
	}()
	select {
	case got := <-done:
		if got.err != nil && attempt != nil {
			return got.session, attempt.explain(got.err)
		}
		return got.session, got.err
	case <-ctx.Done():
		go func() {
			if late := <-done; late.err == nil {
				_ = late.session.Close() // nobody waits for the session any more
			}
		}()
		var none S
		return none, ctx.Err()
	}
}

// sshAuth is a gitssh.AuthMethod for one connection. It remembers how far the handshake came, to distinguish a rejected key from a broken
// connection: the library has no error types for them.
type sshAuth struct {
	user  string
	auth  Auth
	hosts *hostKeys

	hostErr  error // the error of the host key check
	verified bool  // the host key was right, so later errors are about the user
	keyErr   error // the error if no key could be read
}

// Name and String are part of go-git's interface.
func (s *sshAuth) Name() string   { return gitssh.PublicKeysCallbackName }
func (s *sshAuth) String() string { return "user: " + s.user }

// ClientConfig returns the configuration with which go-git connects.
func (s *sshAuth) ClientConfig() (*ssh.ClientConfig, error) {
	return &ssh.ClientConfig{
		User:              s.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(s.keys)},
		HostKeyAlgorithms: s.hosts.algorithms,
		Timeout:           2 * contact.Limit, // of the connection; the handshake may ask for a passphrase
		HostKeyCallback: func(hostname string, remote net.Addr, key ssh.PublicKey) error {
			s.hostErr = s.hosts.check(hostname, remote, key)
			s.verified = s.hostErr == nil
			return s.hostErr
		},
	}, nil
}

func (s *sshAuth) keys() ([]ssh.Signer, error) {
	signers, err := s.auth.signers(s.user)
	s.keyErr = err
	return signers, err
}

// explain turns the error of a failed handshake into a typed one.
func (s *sshAuth) explain(err error) error {
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case s.hostErr != nil:
		return s.hostErr
	case s.keyErr != nil:
		return fmt.Errorf("%w: %w", ErrAuth, s.keyErr)
	case errors.As(err, &negotiation) && !s.verified && len(s.hosts.known) > 0 && negotiatedHostKey(negotiation, s.hosts.algorithms):
		return s.hosts.changed(nil)
	case s.verified && !isNetwork(err):
		return fmt.Errorf("%w: the server %s accepts none of the ssh keys offered for the user %s", ErrAuth, s.hosts.addr, s.user)
	}
	return err
}

// negotiatedHostKey tells whether the failed negotiation was about host keys, and not about ciphers. It was if the offered list is ours.
func negotiatedHostKey(e *ssh.AlgorithmNegotiationError, ours []string) bool {
	return slices.Equal(e.SupportedAlgorithms, ours)
}
