package gitrepo

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// Bounds on the answers of a Git server, over http and over ssh. fleet.yaml names the server, and go-git keeps whole answers in memory.
const (
	// maxReport bounds the report of a push.
	maxReport = 4 << 20
	// maxRefusal bounds the text of an answer that is an error, usually an HTML page. fleetctl's error quotes this text.
	maxRefusal = 2 << 10
)

// These bounds are variables, so that tests can lower them.
var (
	// maxRefs bounds the list of branches and tags, in bytes. It has room for half a million.
	maxRefs = 64 << 20
	// maxPack bounds the pack of one fetch.
	maxPack = 1 << 30
)

// boundedAnswers bounds the answers that go-git reads over http.
type boundedAnswers struct{ next, refs, pack, report http.RoundTripper }

func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return &boundedAnswers{
		next: next, refs: contact.Bound(next, maxRefs), pack: contact.Bound(next, maxPack),
		report: contact.Bound(next, maxReport),
	}
}

// RoundTrip implements http.RoundTripper.
func (b *boundedAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	next := b.next
	switch {
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		next = b.refs
	case strings.HasSuffix(req.URL.Path, "/"+transport.UploadPackServiceName):
		next = b.pack
	case strings.HasSuffix(req.URL.Path, "/"+transport.ReceivePackServiceName):
		next = b.report
	}
	resp, err := next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusMultipleChoices {
		return resp, err
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a part of the text is enough
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
