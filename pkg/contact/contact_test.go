package contact_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// listen accepts connections and passes each to serve with its number.
func listen(t *testing.T, serve func(n int32, conn net.Conn)) (address string, taken *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken = &atomic.Int32{}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := taken.Add(1)
			t.Cleanup(func() { _ = conn.Close() })
			serve(n, conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String(), taken
}

// A server that accepts connections and sends nothing is given up after two connections. This holds for a server that should speak TLS, and
// for a proxy.
func TestSilence(t *testing.T) {
	for name, setup := range map[string]func(address string) (string, *http.Transport){
		"server": func(address string) (string, *http.Transport) { return "https://" + address, &http.Transport{} },
		"proxy": func(address string) (string, *http.Transport) {
			return "https://example.com", &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, taken := listen(t, func(int32, net.Conn) {})
			target, next := setup(address)
			client := &http.Client{Transport: contact.Hasty(next, 50*time.Millisecond)}
			resp, err := client.Get(target) //nolint:bodyclose // there is none
			missed, ok := errors.AsType[*contact.Error](err)
			if !ok || !errors.Is(err, contact.ErrLimit) || missed.Host != strings.TrimPrefix(target, "https://") {
				t.Fatalf("%v, %v", resp, err)
			}
			if n := taken.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// After a failed connection there is one more attempt with the same request.
func TestSecondAttempt(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) }))
	server.StartTLS()
	defer server.Close()
	address, taken := listen(t, func(n int32, conn net.Conn) {
		if n == 1 {
			_ = conn.Close()
			return
		}
		to, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = to.Close() })
		go func() { _, _ = io.Copy(to, conn) }()
		go func() { _, _ = io.Copy(conn, to) }()
	})
	next := server.Client().Transport.(*http.Transport).Clone()
	next.TLSClientConfig.ServerName = "example.com"
	resp, err := (&http.Client{Transport: contact.Hasty(next, 30*time.Second)}).Post("https://"+address, "text/plain",
		strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || string(said) != "hello" || taken.Load() != 2 {
		t.Errorf("%q, %v, %d connections", said, err, taken.Load())
	}
}

// Only the contact has a short time limit. The answer and its body may take longer.
func TestSlowAnswer(t *testing.T) {
	const limit = 100 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for range 2 {
			select {
			case <-time.After(2 * limit):
			case <-req.Context().Done():
				t.Error("given up")
			}
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer server.Close()
	// With an existing connection, the contact takes no time on any machine.
	next := server.Client().Transport
	warm, err := (&http.Client{Transport: next}).Head(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = warm.Body.Close()
	resp, err := (&http.Client{Transport: contact.Hasty(next, limit)}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, err := io.ReadAll(resp.Body); err != nil || string(said) != "xx" {
		t.Errorf("%q, %v", said, err)
	}
}

// A server with an untrusted certificate was reached, so there is no second attempt.
func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = nil
	_, err := (&http.Client{Transport: contact.Transport(&http.Transport{})}).Get(server.URL) //nolint:bodyclose // there is none
	if _, missed := errors.AsType[*contact.Error](err); err == nil || missed {
		t.Errorf("%v", err)
	}
}

// Many callers that need the same server find out together. The content of the server's answer does not matter. A caller that gives up does
// not decide for the others.
func TestServers(t *testing.T) {
	var asked atomic.Int32
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer there.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	servers := contact.NewServers(nil)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := servers.Check(stopped, there.URL+"/stopped"); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := servers.Check(t.Context(), there.URL+"/file"); err != nil {
				t.Errorf("there: %v", err)
			}
			if _, missed := errors.AsType[*contact.Error](servers.Check(t.Context(), gone.URL+"/file")); !missed {
				t.Error("gone: it was reached")
			}
		})
	}
	all.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	if took := time.Since(began); took > contact.Limit*2 {
		t.Errorf("it took %s to find out that a port is closed", took)
	}
}

// If the request's own deadline passes before the second attempt, the server counts as not reached. Otherwise clusterctl would retry for
// minutes.
func TestLimitBeforeContact(t *testing.T) {
	address, _ := listen(t, func(int32, net.Conn) {})
	err := contact.Impatient(50*time.Millisecond).Check(t.Context(), "https://"+address+"/file")
	if missed, ok := errors.AsType[*contact.Error](err); !ok || missed.Host != address {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	client := &http.Client{Transport: contact.Transport(&http.Transport{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Do(req) //nolint:bodyclose // there is none
	if missed, ok := errors.AsType[*contact.Error](err); !ok || !errors.Is(missed, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
