package aws

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
)

// answers refuses a successful answer that is none of AWS. The SDK reads an empty answer, and an HTML page of a proxy, as an empty list.
type answers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	const most = 512 // blanks and a declaration of XML are before the content
	reader := bufio.NewReaderSize(resp.Body, most)
	begin, err := reader.Peek(most) // an error comes again when the rest is read
	if !isAnswer(begin) {
		_ = resp.Body.Close() // nobody reads it
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err // the connection was lost
		}
		return nil, errors.New("the answer does not come from AWS: it is neither XML nor JSON; check the proxy and " + EndpointVariable)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{reader, resp.Body}
	return resp, nil
}

// isAnswer tells whether a text begins as AWS's answers do.
func isAnswer(begin []byte) bool {
	begin = bytes.TrimSpace(begin)
	for bytes.HasPrefix(begin, []byte("<?")) || bytes.HasPrefix(begin, []byte("<!--")) {
		_, rest, ok := bytes.Cut(begin, []byte(">"))
		if !ok {
			return false
		}
		begin = bytes.TrimSpace(rest)
	}
	lower := bytes.ToLower(begin)
	isPage := bytes.HasPrefix(lower, []byte("<html")) || bytes.HasPrefix(lower, []byte("<!doctype"))
	return len(begin) > 0 && (begin[0] == '<' || begin[0] == '{') && !isPage
}
