package forge

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds an answer: a page of pull requests, each with its text and what it is about, has some hundred KiB. The clients keep whatever
// comes, and within timeout that can be all the memory there is.
const maxAnswer = 16 << 20

var errAnswer = errors.New("the answer is too large")

// bounded ends answers that go on and on.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read fails where there is more than may be, so that nothing takes a part for the whole.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("%w: more than %d MiB", errAnswer, maxAnswer>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		_ = b.Close() // not every client does, and then it would go on to come
		return n - 1, fmt.Errorf("%w: more than %d MiB", errAnswer, maxAnswer>>20)
	}
	return n, err
}
