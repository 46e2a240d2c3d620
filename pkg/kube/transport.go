package kube

import (
	"context"
	"io"
	"net/http"
	"time"
)

// roundTimeout bounds requests that are not watches, so that a half-dead connection does not hang a command whose own
// deadline is far away.
type roundTimeout struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (r *roundTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Has("watch") || req.URL.Query().Has("follow") {
		return r.next.RoundTrip(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), r.timeout)
	resp, err := r.next.RoundTrip(req.WithContext(ctx))
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
