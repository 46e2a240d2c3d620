package gitrepo

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// What is read of a server's answers. fleet.yaml names the server, and go-git keeps all that comes.
const (
	// maxRefs bounds the list of branches and tags: there is room for half a million.
	maxRefs = 64 << 20
	// maxReport bounds what a server says of a push.
	maxReport = 4 << 20
	// maxRefusal bounds the text of an answer that is an error, which becomes a part of ours: a page of HTML, mostly.
	maxRefusal = 2 << 10
)

// boundedAnswers bounds what go-git reads of an answer, but for packs: what is fetched is as large as it is.
type boundedAnswers struct{ next, refs, report http.RoundTripper }

func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return &boundedAnswers{next: next, refs: contact.Bound(next, maxRefs), report: contact.Bound(next, maxReport)}
}

// RoundTrip implements http.RoundTripper.
func (b *boundedAnswers) RoundTrip(req *http.Request) (*http.Response, error) {
	next := b.next
	switch {
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		next = b.refs
	case strings.HasSuffix(req.URL.Path, "/git-receive-pack"):
		next = b.report
	}
	resp, err := next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusMultipleChoices {
		return resp, err
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came of it will do
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
