package contact_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// begun sends the header and one byte of an answer, so that the client knows the header.
func begun(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = io.WriteString(w, "x")
	w.(http.Flusher).Flush()
}

// silences are ways in which a reached server keeps its client waiting. Each lasts until the client has gone.
var silences = map[string]http.HandlerFunc{
	"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"a header and nothing more": func(w http.ResponseWriter, r *http.Request) {
		begun(w)
		<-r.Context().Done()
	},
	"byte after byte": func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for begun(w); ; {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
			}
		}
	},
}

// A server that stops in the middle is given up. The error names the server.
func TestSilentServers(t *testing.T) {
	for name, answer := range silences {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // after that, the server notices when its client has gone
				answer(w, r)
			}))
			t.Cleanup(server.Close)
			client := &http.Client{Transport: contact.Restless(&http.Transport{}, 300*time.Millisecond)}
			resp, err := client.Post(server.URL, "text/plain", strings.NewReader("a question"))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			var silent *contact.SilentError
			if !errors.As(err, &silent) || silent.Host != strings.TrimPrefix(server.URL, "http://") {
				t.Fatalf("the error is %v", err)
			}
			var network net.Error
			if !errors.As(err, &network) || !network.Timeout() {
				t.Errorf("%v is none of the network", err)
			}
		})
	}
}

// A caller whose context ends gets the error of the context at once.
func TestInterruptedWaits(t *testing.T) {
	for name, answer := range silences {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				cancel()
				answer(w, r)
			}))
			t.Cleanup(server.Close)
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := (&http.Client{Transport: contact.Transport(&http.Transport{})}).Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// An answer in pieces arrives completely, and its reader may be slow: only waiting for the server counts.
func TestSlowReaders(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			_, _ = io.WriteString(w, strings.Repeat("x", 40))
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	resp, err := (&http.Client{Transport: contact.Transport(&http.Transport{})}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if all, err := io.ReadAll(resp.Body); err != nil || len(all) != 4000 {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

// A server that does not take what is sent to it is given up, by name.
func TestServersThatTakeNothing(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	client := &http.Client{Transport: contact.Restless(&http.Transport{}, 300*time.Millisecond)}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader(strings.Repeat("x", 64<<20))) //nolint:bodyclose // there is none
	if silent, ok := errors.AsType[*contact.SilentError](err); !ok || silent.Host != strings.TrimPrefix(server.URL, "http://") {
		t.Fatalf("%v, %v", resp, err)
	}
}

// What is sent arrives whole, also on a second connection.
func TestWhatIsSent(t *testing.T) {
	sent := strings.Repeat("0123456789", 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
			return
		}
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != sent || r.ContentLength != int64(len(sent)) {
			t.Errorf("%d bytes of %d, %v", len(got), r.ContentLength, err)
		}
	}))
	t.Cleanup(server.Close)
	resp, err := (&http.Client{Transport: contact.Transport(&http.Transport{})}).Post(server.URL, "text/plain", strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// taking is a writer that takes so many bytes, and then nothing.
type taking struct {
	left int
	got  strings.Builder
	gone chan struct{}
}

func (w *taking) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.got.Write(p[:n])
	if w.left -= n; n < len(p) {
		<-w.gone
		return n, io.ErrClosedPipe
	}
	return n, nil
}

func (w *taking) Close() error { return nil }

// A writer gets all, or an error that names the server.
func TestSteadyWriter(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	silent := &contact.SilentError{Host: "git.example.com", Limit: 300 * time.Millisecond}
	all := &taking{left: len(text)}
	if n, err := io.WriteString(contact.SteadyWriter(all, &contact.SilentError{Limit: time.Hour}), text); n != len(text) || err != nil ||
		all.got.String() != text {
		t.Errorf("%d bytes, %v", n, err)
	}
	some := &taking{left: len(text) / 2, gone: make(chan struct{})}
	defer close(some.gone)
	if n, err := io.WriteString(contact.SteadyWriter(some, silent), text); n > len(text)/2 || !errors.Is(err, silent) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// lateByte is a body whose byte comes when the limit has just passed.
type lateByte struct{ passed chan struct{} }

func (b *lateByte) Read(p []byte) (int, error) {
	<-b.passed
	return copy(p, "x"), nil
}

func (b *lateByte) Close() error { return nil }

// Who gets the error of a silent server finds that the server was stopped: a byte that comes at the limit is not overtaken by the timer.
func TestStoppedBeforeTheError(t *testing.T) {
	passed, read := make(chan struct{}), make(chan struct{})
	var first, stopped atomic.Bool
	silent := &contact.SilentError{Host: "git.example.com", Limit: time.Millisecond}
	body := contact.Steady(&lateByte{passed}, silent, func(error) {
		if first.CompareAndSwap(false, true) { // the timer's own call, on a busy machine
			close(passed)
			<-read
			return
		}
		stopped.Store(true)
	})
	if _, err := body.Read(make([]byte, 8)); !errors.Is(err, silent) {
		t.Errorf("got %v", err)
	}
	if close(read); !stopped.Load() {
		t.Error("the error came before the stop")
	}
}

// A context that asks for less silence gives a silent server up after that, and asks it no second time. Other contexts go on asking.
func TestWithSilence(t *testing.T) {
	for name, answer := range silences {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				answer(w, r)
			}))
			t.Cleanup(server.Close)
			client := &http.Client{Transport: contact.Transport(&http.Transport{})}
			get := func(ctx context.Context) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				return err
			}
			for range 2 {
				asked.Store(0)
				ctx := contact.WithSilence(t.Context(), 300*time.Millisecond)
				for range 20 {
					silent, ok := errors.AsType[*contact.SilentError](get(ctx))
					if !ok || silent.Host != strings.TrimPrefix(server.URL, "http://") || silent.Limit != 300*time.Millisecond {
						t.Fatalf("got %v", silent)
					}
				}
				if got := asked.Load(); got != 1 {
					t.Errorf("the server was asked %d times", got)
				}
			}
		})
	}
}
