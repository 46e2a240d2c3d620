package contact

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrTooLarge is the cause where an answer has more than was to be taken.
var ErrTooLarge = errors.New("the answer is too large")

// Bound returns next with a limit of most bytes for an answer. It is for clients that keep the whole answer of a server that somebody else
// has named: an endless answer would fill the memory. Reading more fails, so that nobody takes a part for the whole. The error matches
// ErrTooLarge.
func Bound(next http.RoundTripper, most int) http.RoundTripper { return &bounded{next, most} }

// BoundReader is Bound for what comes by another way than http.
func BoundReader(from io.Reader, most int) io.Reader {
	closer, ok := from.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(from)
	}
	return &boundedBody{closer, most, most}
}

type bounded struct {
	next http.RoundTripper
	most int
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, b.most, b.most}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	most, left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge()
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		_ = b.Close() // not every client does, and then it would go on to come
		return n - 1, b.tooLarge()
	}
	return n, err
}

func (b *boundedBody) tooLarge() error {
	return fmt.Errorf("%w: more than %d MiB", ErrTooLarge, b.most>>20)
}
