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

// boundedSSH bounds the answers that go-git reads over ssh.
type boundedSSH struct{ transport.Transport }

// NewUploadPackSession implements transport.Transport.
func (b boundedSSH) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	session, out, err := openBounded(b.Transport.NewUploadPackSession, ep, auth)
	if err != nil {
		return nil, err
	}
	return &boundedUpload{session, out}, nil
}

// NewReceivePackSession implements transport.Transport.
func (b boundedSSH) NewReceivePackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
	session, out, err := openBounded(b.Transport.NewReceivePackSession, ep, auth)
	if err != nil {
		return nil, err
	}
	return &boundedReceive{session, out}, nil
}

// openBounded opens a session with open. The server first sends its references, so their bound holds until the session sets another one.
func openBounded[S transport.Session](
	open func(*transport.Endpoint, transport.AuthMethod) (S, error), ep *transport.Endpoint, auth transport.AuthMethod,
) (session S, out *output, err error) {
	if session, err = open(ep, auth); err != nil {
		return session, nil, err
	}
	if out, err = outputOf(session); err != nil {
		return session, nil, err
	}
	out.atMost(maxRefs)
	return session, out, nil
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

// output is the reader from which go-git reads the answers of a session.
type output struct {
	field reflect.Value
	from  io.Reader
}

// outputOf returns the output of a session. go-git does not export the type of its ssh sessions, but it exports their field Stdout, which
// outputOf sets. If a release of go-git has no such field, outputOf returns an error, so that no session is without a bound.
func outputOf(session transport.Session) (*output, error) {
	if value := reflect.ValueOf(session); value.Kind() == reflect.Pointer && value.Elem().Kind() == reflect.Struct {
		if field := value.Elem().FieldByName("Stdout"); field.IsValid() && field.CanSet() {
			if from, ok := reflect.TypeAssert[io.Reader](field); ok {
				return &output{field, from}, nil
			}
		}
	}
	_ = session.Close() // no request was sent yet
	return nil, fmt.Errorf("bound the answers of the server: %T has no output", session)
}

// atMost bounds the number of bytes that the session can read from now on.
func (o *output) atMost(most int) { o.field.Set(reflect.ValueOf(contact.BoundReader(o.from, most))) }
