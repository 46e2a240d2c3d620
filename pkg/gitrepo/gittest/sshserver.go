package gittest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/crypto/ssh"
)

// sshServer speaks SSH itself and leaves the repository to git. What it does not do for Git it refuses: shells, terminals, forwarding.
type sshServer struct {
	listener net.Listener
	sessions sync.WaitGroup

	lock   sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

func (b *sshServer) hostKeysChanged(*SSH)   {}
func (b *sshServer) authorizedChanged(*SSH) {}

// serve takes connections until close.
func (b *sshServer) serve(s *SSH) {
	b.sessions.Go(func() {
		for {
			conn, err := b.listener.Accept()
			if err != nil {
				return // closed
			}
			if !b.keep(conn) {
				return
			}
			b.sessions.Go(func() {
				defer b.drop(conn)
				b.connection(s, conn)
			})
		}
	})
}

// keep remembers a connection, to end it with the server.
func (b *sshServer) keep(conn net.Conn) bool {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.closed {
		_ = conn.Close()
		return false
	}
	b.open[conn] = true
	return true
}

func (b *sshServer) drop(conn net.Conn) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.open, conn)
	_ = conn.Close() // the client may have done so
}

// close ends all sessions, and returns when the last git has ended: nothing may write into a repository that is being removed.
func (b *sshServer) close() {
	b.lock.Lock()
	b.closed = true
	_ = b.listener.Close()
	for conn := range b.open {
		_ = conn.Close()
	}
	b.lock.Unlock()
	b.sessions.Wait()
}

// keyReadOnlyExtension marks in a login's permissions a key that may only read.
const keyReadOnlyExtension = "gittest-read-only"

// errStranger says that nobody has authorized a key.
var errStranger = errors.New("gittest: the key is not authorized")

// config is how the server is at this moment.
func (b *sshServer) config(s *SSH) (*ssh.ServerConfig, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	allowed := s.allowed
	config := &ssh.ServerConfig{
		MaxAuthTries: 20, // a person's agent may hold that many keys
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			for _, a := range allowed {
				if bytes.Equal(a.key.Marshal(), key.Marshal()) {
					permissions := &ssh.Permissions{Extensions: map[string]string{}}
					if a.readOnly {
						permissions.Extensions[keyReadOnlyExtension] = ""
					}
					return permissions, nil
				}
			}
			return nil, errStranger
		},
	}
	for _, key := range s.hosts {
		host, err := ssh.NewSignerFromSigner(key)
		if err != nil {
			return nil, err
		}
		config.AddHostKey(host)
	}
	return config, nil
}

// connection serves a client until it or the server ends.
func (b *sshServer) connection(s *SSH, conn net.Conn) {
	config, err := b.config(s)
	if err != nil {
		s.t.Errorf("gittest: %v", err)
		return
	}
	login, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // a probe, a stranger, or someone who does not trust the host key
	}
	_, readOnly := login.Permissions.Extensions[keyReadOnlyExtension]
	go ssh.DiscardRequests(requests) // ends with the connection
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.Prohibited, "gittest: only Git is served")
			continue
		}
		session, wishes, err := channel.Accept()
		if err != nil {
			return
		}
		sessions.Go(func() { serveSession(s, session, wishes, readOnly) })
	}
}

// serveSession runs the one command of a session.
func serveSession(s *SSH, session ssh.Channel, wishes <-chan *ssh.Request, readOnly bool) {
	defer func() { _ = session.Close() }()
	for wish := range wishes {
		var command struct{ Line string }
		if wish.Type != "exec" || ssh.Unmarshal(wish.Payload, &command) != nil {
			_ = wish.Reply(false, nil) // a variable, a terminal, a shell
			continue
		}
		_ = wish.Reply(true, nil)
		go ssh.DiscardRequests(wishes) // ends with the session
		code := runService(s, session, command.Line, readOnly)
		_, _ = session.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}

// runService lets git serve a session, and returns its exit code.
func runService(s *SSH, session ssh.Channel, command string, readOnly bool) uint32 {
	service, refusal := s.service(command, readOnly)
	if refusal != "" {
		_, _ = io.WriteString(session.Stderr(), refusal+"\n")
		return 1
	}
	if s.Answer != nil {
		s.Answer("git-"+service, session)
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background()) // the session's own life
	defer cancel()
	git := exec.CommandContext(ctx, "git", service, s.Dir)
	git.Env = append(os.Environ(), Environment()...)
	git.Stdout, git.Stderr = session, session.Stderr()
	in, err := git.StdinPipe()
	if err == nil {
		err = git.Start()
	}
	if err != nil {
		_, _ = io.WriteString(session.Stderr(), "gittest: "+err.Error()+"\n")
		return 1
	}
	// Not as git's Stdin: Wait would wait for the end of what the client sends, and the client may wait for ours.
	go func() {
		_, _ = io.Copy(in, session)
		_ = in.Close()
	}()
	if git.Wait() != nil {
		return 1
	}
	return 0
}
