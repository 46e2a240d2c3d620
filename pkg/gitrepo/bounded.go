package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// What is read of a server's answers, over http and over ssh. fleet.yaml names the server, and go-git keeps all that comes.
const (
	// maxReport bounds what a server says of a push.
	maxReport = 4 << 20
	// maxRefusal bounds the text of an answer that is an error, which becomes a part of ours: a page of HTML, mostly.
	maxRefusal = 2 << 10
)

// Variables for tests, which would have to send so much.
var (
	// maxRefs bounds the list of branches and tags: there is room for half a million.
	maxRefs = 64 << 20
	// maxPack bounds what is fetched at once.
	maxPack = 1 << 30
)

// boundedAnswers bounds what go-git reads of an answer over http.
type boundedAnswers struct{ next, refs, pack, report http.RoundTripper }

func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return &boundedAnswers{next: next, refs: contact.Bound(next, maxRefs), pack: contact.Bound(next, maxPack), report: contact.Bound(next, maxReport)}
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came of it will do
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// boundedSSH bounds what go-git reads of an answer over ssh.
type boundedSSH struct{ transport.Transport }

// NewUploadPackSession implements transport.Transport.
func (b boundedSSH) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	session, err := b.Transport.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, err
	}
	out, err := outputOf(session)
	if err != nil {
		return nil, err
	}
	out.atMost(maxRefs)
	return &boundedUpload{session, out}, nil
}

// NewReceivePackSession implements transport.Transport.
func (b boundedSSH) NewReceivePackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
	session, err := b.Transport.NewReceivePackSession(ep, auth)
	if err != nil {
		return nil, err
	}
	out, err := outputOf(session)
	if err != nil {
		return nil, err
	}
	out.atMost(maxRefs)
	return &boundedReceive{session, out}, nil
}

type boundedUpload struct {
	transport.UploadPackSession
	out *output
}

// UploadPack implements transport.UploadPackSession.
func (b *boundedUpload) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	b.out.atMost(maxPack)
	return b.UploadPackSession.UploadPack(ctx, req)
}

type boundedReceive struct {
	transport.ReceivePackSession
	out *output
}

// ReceivePack implements transport.ReceivePackSession.
func (b *boundedReceive) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	b.out.atMost(maxReport)
	return b.ReceivePackSession.ReceivePack(ctx, req)
}

// output is what go-git reads the answers of a session from.
type output struct {
	field reflect.Value
	from  io.Reader
}

// outputOf finds it. go-git has no place for a reader of ours in its ssh sessions, and no type that others could name, but the field is a public one.
// A release without it is an error here, and not a session without a bound.
func outputOf(session transport.Session) (*output, error) {
	if value := reflect.ValueOf(session); value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct {
		if field := value.Elem().FieldByName("Stdout"); field.IsValid() && field.CanSet() {
			if from, ok := reflect.TypeAssert[io.Reader](field); ok {
				return &output{field, from}, nil
			}
		}
	}
	_ = session.Close() // nothing was asked for yet
	return nil, fmt.Errorf("bound the answers of the server: %T has no output", session)
}

// atMost lets so many bytes be read from now on.
func (o *output) atMost(most int) { o.field.Set(reflect.ValueOf(contact.BoundReader(o.from, most))) }
