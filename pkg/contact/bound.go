package contact

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrTooLarge matches the error for an answer beyond its limit.
var ErrTooLarge = errors.New("the answer is too large")

// Bound returns next with a limit of most bytes for each answer. It is for clients that keep the whole answer of an untrusted server: an
// endless answer would fill the memory. Reading beyond the limit is an error that matches ErrTooLarge, so that no caller takes a part for
// the whole.
func Bound(next http.RoundTripper, most int) http.RoundTripper { return &bounded{next, most} }

// BoundReader is Bound for content that does not come through http.
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
		_ = b.Close() // not every client closes the body, and the server would go on sending
		return n - 1, b.tooLarge()
	}
	return n, err
}

func (b *boundedBody) tooLarge() error {
	return fmt.Errorf("%w: more than %d MiB", ErrTooLarge, b.most>>20)
}
