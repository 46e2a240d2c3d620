package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
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
}

func (r *roundTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Has("watch") || req.URL.Query().Has("follow") {
		return hurried(r.next.RoundTrip(req))
	}
	began := time.Now().UnixNano()
	late := &lateError{after: r.timeout}
	ctx, cancel := context.WithTimeoutCause(req.Context(), r.timeout, late)
	resp, err := hurried(r.bounded.RoundTrip(req.WithContext(ctx)))
	if err != nil {
		cause := context.Cause(ctx)
		cancel()
		if errors.Is(cause, late) {
			late.busy = r.answered.Load() >= began
			return nil, late
		}
		return nil, err
	}
	r.answered.Store(time.Now().UnixNano())
	resp.Body = &cancelOnClose{ReadCloser: resp.Body, cause: func() error { return context.Cause(ctx) }, cancel: cancel}
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
}

// Read reads the body. If the answer stops in the middle, the error is the same as for no answer.
func (b *cancelOnClose) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if late, ok := errors.AsType[*lateError](b.cause()); ok && err != nil && !errors.Is(err, io.EOF) {
		return n, late
	}
	return n, err
}

// Close closes the body.
func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
