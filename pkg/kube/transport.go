package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

const (
	// mostBytes is the default of Options.MostBytes. A list of thousands of clusters is smaller.
	mostBytes = 1 << 30
	// MostOfWorkload is Options.MostBytes for workload clusters, enough for 50,000 pods. It is lower, because fleetctl asks many of them
	// at once, and other people may run them.
	MostOfWorkload = 256 << 20
)

// bound limits each request to timeout and its answer to most bytes. It does not limit watches.
func bound(next http.RoundTripper, timeout time.Duration, most int) http.RoundTripper {
	return &roundTimeout{next: next, bounded: contact.Bound(next, most), timeout: timeout}
}

// roundTimeout bounds requests that are not watches, so that a dead connection does not hang a command until the command's own deadline.
type roundTimeout struct {
	next    http.RoundTripper
	bounded http.RoundTripper // next with a bounded answer, for requests that are not watches
	timeout time.Duration
}

func (r *roundTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Has("watch") || req.URL.Query().Has("follow") {
		return r.next.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), r.timeout)
	resp, err := r.bounded.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelOnClose{ReadCloser: resp.Body, own: ctx, callers: req.Context(), cancel: cancel}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (r *roundTimeout) WrappedRoundTripper() http.RoundTripper { return r.next }

// errSlow means that the time of a request ended, and the server is known to be there: it began to answer, or has just answered another
// request. So it is slow, or a machine on either side is.
var errSlow = errors.New("the API server answers slowly")

// cancelOnClose releases the context of a request when its body is closed.
type cancelOnClose struct {
	io.ReadCloser
	// own is the context of the request, with its time limit, and callers that of the caller.
	own, callers context.Context //nolint:containedctx // they are those of this one request
	cancel       context.CancelFunc
}

// Read reads the body, and tells the end of the request's own time from other errors.
func (b *cancelOnClose) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(b.own.Err(), context.DeadlineExceeded) && b.callers.Err() == nil {
		err = fmt.Errorf("%w: %w", errSlow, err)
	}
	return n, err
}

// Close closes the body.
func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
