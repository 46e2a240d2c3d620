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

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

const (
	// mostBytes is the default of Options.MostBytes. A list of thousands of clusters is smaller.
	mostBytes = 1 << 30
	// MostOfWorkload is Options.MostBytes for workload clusters. It is enough for 50,000 pods. It is lower than the default, because fleetctl
	// asks many workload clusters at once, and because other people may run them.
	MostOfWorkload = 256 << 20
)

// bound limits the time of each request to timeout, and the size of its answer to most bytes. It does not limit watches.
func bound(next http.RoundTripper, timeout time.Duration, most int) http.RoundTripper {
	return &roundTimeout{next: next, bounded: contact.Bound(next, most), timeout: timeout, most: int64(most)}
}

// refusals notes that an API server has refused a login: the error that client-go makes of it does not name the server.
type refusals struct {
	next    http.RoundTripper
	refused *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (r *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		r.refused.Store(true)
	}
	return resp, err
}

// takenKey is the key of what the pages of a list have taken, in the context of their requests.
type takenKey struct{}

type taken struct{ bytes, objects atomic.Int64 }

// leastPage is how many bytes a page takes of the limit at least. A full page of an honest list is larger. So an endless list of small
// pages ends too.
const leastPage = 64 << 10

// inPages returns a context for the requests for all pages of one list. Together, the pages have the limit of one answer.
func inPages(ctx context.Context) context.Context {
	return context.WithValue(ctx, takenKey{}, &taken{})
}

// page is the body of one page of a list.
type page struct {
	io.ReadCloser
	taken *atomic.Int64
	most  int64
}

// Read implements io.Reader.
func (p *page) Read(into []byte) (int, error) {
	n, err := p.ReadCloser.Read(into)
	if p.taken.Add(int64(n)) > p.most {
		return 0, fmt.Errorf("%w: the pages of the list have more than %d MiB together", contact.ErrTooLarge, p.most>>20)
	}
	return n, err
}

// roundTimeout bounds requests that are not watches, so that a dead connection does not block a command until the command's own deadline.
type roundTimeout struct {
	next    http.RoundTripper
	bounded http.RoundTripper // next with bounded answers, for requests that are not watches
	timeout time.Duration
	most    int64 // bytes of one answer, and of all pages of one list
	// answered is the time at which the server last answered a request that is not a watch, in nanoseconds since 1970.
	answered atomic.Int64
	// silent is about the requests of discovery.
	silent silence
}

// silence counts the requests of discovery without an answer in time, one after the other. Discovery takes no context, and its callers
// queue for it: each of them would wait the whole time again, long after the deadline of its command. For the same reason, silence counts
// broken connections and requests to wait: client-go would try ten times.
type silence struct {
	mu           sync.Mutex
	late         int
	last         time.Time
	lost, paused int
}

const (
	// mostSilent is how many late answers are enough.
	mostSilent = 2
	// mostLost is how many broken connections are enough, and how many requests to wait.
	mostLost = 3
)

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

// isEnough counts a broken connection or a request to wait in count. It tells whether client-go has to stop trying, and begins anew.
func (s *silence) isEnough(count *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *count++; *count < mostLost {
		return false
	}
	*count = 0
	return true
}

// lostError says that the connection broke again and again. Its type tells client-go not to try again, so it wraps no other error.
type lostError struct{ why string }

func (e *lostError) Error() string { return "the connection breaks again and again: " + e.why }

// discover sends a request of discovery, for which client-go would wait too long.
func (r *roundTimeout) discover(req *http.Request) (*http.Response, error) {
	resp, err := r.bounded.RoundTrip(req)
	switch {
	case IsLost(err) && !utilnet.IsConnectionRefused(err) && r.silent.isEnough(&r.silent.lost):
		return nil, &lostError{shorten(err.Error())}
	case err == nil && resp.Header.Get("Retry-After") != "" && r.silent.isEnough(&r.silent.paused):
		resp.Header.Del("Retry-After")
	}
	return resp, err
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
	note, send := func(bool) {}, r.bounded.RoundTrip
	if isDiscovery(req) {
		note, send = r.silent.note, r.discover
		if r.silent.is(r.timeout) {
			return nil, &lateError{after: r.timeout}
		}
	}
	late := &lateError{after: r.timeout}
	ctx, cancel := context.WithTimeoutCause(req.Context(), r.timeout, late)
	answered := progress.Wait(ctx, func() string { return "an answer of " + sameorigin.Display(req.URL.Scheme+"://"+req.URL.Host) })
	resp, err := hurried(send(req.WithContext(ctx)))
	if err != nil {
		cause := context.Cause(ctx)
		cancel()
		answered()
		if errors.Is(cause, late) {
			late.busy = r.answered.Load() >= began
			note(true)
			return nil, late
		}
		return nil, err
	}
	r.answered.Store(time.Now().UnixNano())
	pages, inPages := req.Context().Value(takenKey{}).(*taken)
	if inPages {
		pages.bytes.Add(leastPage)
		resp.Body = &page{resp.Body, &pages.bytes, r.most}
	} else {
		pages = &taken{}
	}
	resp.Body = boundObjects(resp.Body, resp.Header.Get("Content-Type"), &pages.objects, r.most)
	resp.Body = &cancelOnClose{
		ReadCloser: resp.Body, cause: func() error { return context.Cause(ctx) }, cancel: func() { cancel(); answered() }, ended: note,
	}
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
