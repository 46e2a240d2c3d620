package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

const (
	// mostBytes is the default of Options.MostBytes. A list of thousands of clusters is smaller.
	mostBytes = 1 << 30
	// MostOfWorkload is Options.MostBytes for workload clusters. It is enough for 50,000 pods. It is lower than the default, because fleetctl
	// asks many workload clusters at once, and because other people may run them.
	MostOfWorkload = 256 << 20
)

// bound limits the time of each request to timeout and the size of its answer to most bytes. It does not limit watches.
func bound(next http.RoundTripper, timeout time.Duration, most int) http.RoundTripper {
	return &roundTimeout{next: next, bounded: contact.Bound(next, most), timeout: timeout}
}

// roundTimeout bounds requests that are not watches, so that a dead connection does not block a command until the command's own deadline.
type roundTimeout struct {
	next    http.RoundTripper
	bounded http.RoundTripper // next with bounded answers, for requests that are not watches
	timeout time.Duration
	// answered is the time at which the server last answered a request that is not a watch, in nanoseconds since 1970.
	answered atomic.Int64
	// silent is about the requests of discovery.
	silent silence
}

// silence counts the requests of discovery without an answer in time, one after the other. Discovery takes no context, and its callers
// queue for it: each of them would wait the whole time again, long after the deadline of its command.
type silence struct {
	mu   sync.Mutex
	late int
	last time.Time
}

// mostSilent is how many late answers are enough.
const mostSilent = 2

// is says whether the server was silent just now, so that it is not asked again.
func (s *silence) is(within time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late >= mostSilent && time.Since(s.last) < within
}

// note counts a late answer, and begins anew with one in time.
func (s *silence) note(late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !late {
		s.late = 0
		return
	}
	s.late, s.last = s.late+1, time.Now()
}

// isDiscovery says whether a request asks an API server for its groups.
func isDiscovery(req *http.Request) bool {
	return strings.HasSuffix(req.URL.Path, "/api") || strings.HasSuffix(req.URL.Path, "/apis")
}

func (r *roundTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Has("watch") || req.URL.Query().Has("follow") {
		return hurried(r.next.RoundTrip(req))
	}
	began := time.Now().UnixNano()
	late := &lateError{after: r.timeout}
	note := func(bool) {}
	if isDiscovery(req) {
		if r.silent.is(r.timeout) {
			return nil, late
		}
		note = r.silent.note
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), r.timeout, late)
	resp, err := hurried(r.bounded.RoundTrip(req.WithContext(ctx)))
	if err != nil {
		cause := context.Cause(ctx)
		cancel()
		if errors.Is(cause, late) {
			late.busy = r.answered.Load() >= began
			note(true)
			return nil, late
		}
		return nil, err
	}
	r.answered.Store(time.Now().UnixNano())
	resp.Body = &cancelOnClose{ReadCloser: resp.Body, cause: func() error { return context.Cause(ctx) }, cancel: cancel, ended: note}
	return resp, nil
}

// longestPause bounds, in seconds, the pause before client-go repeats a request. client-go repeats a request up to ten times.
const longestPause = 2

// hurried bounds the pause that an answer asks for in Retry-After. client-go would wait as long as the server says, even a day.
func hurried(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > longestPause {
		resp.Header.Set("Retry-After", strconv.Itoa(longestPause))
	}
	return resp, nil
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (r *roundTimeout) WrappedRoundTripper() http.RoundTripper { return r.next }

// lateError says that an API server has not answered a request within the timeout of a single request. One more attempt is worthwhile: the
// command may have time left, and the server's machine may only be busy.
type lateError struct {
	after time.Duration
	// busy means that the server has answered another request in this time, so it is not dead.
	busy bool
}

func (e *lateError) Error() string { return fmt.Sprintf("no complete answer within %s", e.after) }

// Timeout implements net.Error.
func (e *lateError) Timeout() bool { return true }

// Is makes errors.Is true for context.DeadlineExceeded, for callers that do not distinguish whose deadline ended.
func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// cancelOnClose releases the context of a request when its body is closed.
type cancelOnClose struct {
	io.ReadCloser
	cause  func() error // why the request has ended; nil if it has not
	cancel context.CancelFunc
	ended  func(late bool) // is told how the answer ended
}

// Read reads the body. If the answer stops in the middle, the error is the same as for no answer.
func (b *cancelOnClose) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if late, ok := errors.AsType[*lateError](b.cause()); ok && err != nil && !errors.Is(err, io.EOF) {
		b.ended(true)
		return n, late
	}
	if errors.Is(err, io.EOF) {
		b.ended(false)
	}
	return n, err
}

// Close closes the body.
func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
