package kube

import (
	"context"
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
	resp.Body = &cancelOnClose{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (r *roundTimeout) WrappedRoundTripper() http.RoundTripper { return r.next }

// cancelOnClose releases the context of a request when its body is closed.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body.
func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
