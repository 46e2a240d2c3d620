package kube

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

const (
	// mostBytes bounds an answer of any API server: a list of a fleet of thousands of clusters is smaller.
	mostBytes = 1 << 30
	// MostOfWorkload is Options.MostBytes for workload clusters, of which many are asked at once, and which others may run: there is room for 50,000 pods.
	MostOfWorkload = 256 << 20
)

// bound gives each request but watches a timeout, and each answer most bytes.
func bound(next http.RoundTripper, timeout time.Duration, most int) http.RoundTripper {
	return &roundTimeout{next: next, bounded: contact.Bound(next, most), timeout: timeout}
}

// roundTimeout bounds requests that are not watches, so that a half-dead connection does not hang a command whose own
// deadline is far away.
type roundTimeout struct {
	next    http.RoundTripper
	bounded http.RoundTripper // next, for what is no watch
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

// WrappedRoundTripper lets client-go find the transport beneath.
func (r *roundTimeout) WrappedRoundTripper() http.RoundTripper { return r.next }

// cancelOnClose releases the context of a request when its body has been read.
type cancelOnClose struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body.
func (b *cancelOnClose) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
