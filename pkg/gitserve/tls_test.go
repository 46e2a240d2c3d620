//go:build unix

package gitserve_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

// neighbour binds an address and keeps every byte that it is told: once without TLS, once with a certificate of its own.
type neighbour struct {
	net.Listener
	mu    sync.Mutex
	heard []byte
}

func (n *neighbour) listen(t *testing.T, address string) {
	t.Helper()
	var err error
	if n.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	go func() {
		for {
			conn, err := n.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(time.Second))
				buffer := make([]byte, 4096)
				for {
					count, err := conn.Read(buffer)
					n.mu.Lock()
					n.heard = append(n.heard, buffer[:count]...)
					n.mu.Unlock()
					if err != nil {
						return
					}
				}
			}()
		}
	}()
}

func (n *neighbour) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return string(n.heard)
}

// ended kills the server of a state folder and waits until it is gone.
func ended(t *testing.T, s gitserve.Spec) {
	t.Helper()
	if err := syscall.Kill(status(t, s).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for status(t, s).Running {
		select {
		case <-ctx.Done():
			t.Fatal("it does not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Who binds the port after the server has died is not even spoken to.
func TestNeighbourHearsNothing(t *testing.T) {
	s := spec(t)
	e := ensure(t, s, true)
	ended(t, s)
	n := &neighbour{}
	n.listen(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(e.Port)))
	if st := status(t, s); st.Running || st.Healthy {
		t.Errorf("status %+v", st)
	}
	if _, _, err := gitserve.Ensure(t.Context(), s); err == nil {
		t.Error("the neighbour was taken for the server")
	}
	if said := n.said(); said != "" {
		t.Errorf("the neighbour was told %q", said)
	}
}

// Also one who has a certificate, and the lock's word that a server runs, is told nothing but the beginning of a handshake.
func TestStrangersCertificate(t *testing.T) {
	s := spec(t)
	e := ensure(t, s, true)
	other := spec(t)
	stranger := ensure(t, other, true)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(e.CA)) {
		t.Fatal("there is no authority")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	get := func(url string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	if err := get(gitserve.URL("127.0.0.1", e.Port)); err != nil {
		t.Error(err)
	}
	if err := get(gitserve.URL("127.0.0.1", stranger.Port)); err == nil {
		t.Error("another fleet's server counts as this one's")
	}
	// The state of the first, and the port of the second: its health is asked for, and no password is told.
	content, err := os.ReadFile(filepath.Join(s.StateDir, "git-serve.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{}
	if err := json.Unmarshal(content, &kept); err != nil {
		t.Fatal(err)
	}
	n := &neighbour{}
	n.listen(t, "127.0.0.1:0")
	kept["port"] = n.Addr().(*net.TCPAddr).Port
	if content, err = json.Marshal(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.StateDir, "git-serve.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if st := status(t, s); st.Healthy {
		t.Errorf("status %+v", st)
	}
	if said := n.said(); strings.Contains(said, "HTTP/1") || strings.Contains(said, "Authorization") {
		t.Errorf("the neighbour was told %q", said)
	}
}

// An older version has left a server without TLS. `host start` brings the server back unchanged, because Flux knows it without TLS. init
// gives the server a certificate, and a new password because everybody could hear the old one. The port stays.
func TestServerFromBefore(t *testing.T) {
	s := spec(t)
	e := ensure(t, s, true)
	if err := gitserve.Stop(t.Context(), s.StateDir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.StateDir, "git-serve.json")
	content, err := json.Marshal(map[string]any{
		"repoDir": s.RepoDir, "listen": "127.0.0.1", "port": e.Port, "username": e.Username,
		"password": e.Password,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	again := s
	again.Started = true
	if before := ensure(t, again, true); before.CA != "" || before.Password != e.Password || before.Port != e.Port {
		t.Errorf("it came back as %+v", before)
	}
	if st := status(t, s); !st.Healthy || st.TLS {
		t.Errorf("status %+v", st)
	}
	ensure(t, again, false)
	now := ensure(t, s, true)
	if now.CA == "" || now.Password == e.Password || now.Port != e.Port {
		t.Errorf("after init it is %+v", now)
	}
	if served(t, now) != "3" || !status(t, s).TLS {
		t.Error("the wrong content")
	}
	if started := ensure(t, again, false); started != now {
		t.Errorf("%+v, want %+v", started, now)
	}
}

// The server's certificate has the name by which Flux knows the server. Another name does not make another authority.
func TestHost(t *testing.T) {
	s := spec(t)
	s.Host = "git.fleet.example"
	e := ensure(t, s, true)
	verify := func(name string) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(e.CA))
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}}
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(e.Port)))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for name, good := range map[string]bool{"git.fleet.example": true, "127.0.0.1": true, "elsewhere.example": false} {
		if err := verify(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Host = "elsewhere.example"
	if moved := ensure(t, s, true); moved != e {
		t.Errorf("%+v, want %+v", moved, e)
	}
	if err := verify("elsewhere.example"); err != nil {
		t.Error(err)
	}
	s.Host = ""
	ensure(t, s, false)
}
