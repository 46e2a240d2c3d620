// Package contact limits the time until a command knows that it cannot reach a server. A download may take as long as it needs, because
// networks may be slow. But a server that stops in the middle of its answer is given up.
package contact

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/progress"
)

// The limits of a contact. Two attempts with a pause between them end within eight seconds. So a command without a network reports this
// within ten seconds, while its user is still watching.
const (
	// Limit bounds one attempt: resolving the address, connecting, the proxy, TLS. The pause counts as part of the second attempt.
	Limit = 4 * time.Second

	attempts = 2
	pause    = time.Second
	// answer bounds one call of Check.
	answer = attempts*Limit + pause
)

// ErrLimit matches the Error of an attempt that took too long.
var ErrLimit = errors.New("no answer")

func errLimit(limit time.Duration) error { return fmt.Errorf("%w within %s", ErrLimit, limit) }

// Error says that a server was not reached. The server has received nothing.
type Error struct {
	// Host is the host in the URL, with the port if the URL has one.
	Host string
	// Err is the error of the last attempt.
	Err error
}

// Error names the host and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s cannot be reached: %v", e.Host, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Transport returns next with a bounded first contact, which is tried twice. If next is nil, it uses Go's own transport with the proxy of
// the environment. If it cannot reach a server, the error matches *Error. If a server was reached but does not begin or continue its
// answer, the error matches *SilentError.
func Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{next: next, limit: Limit, pause: pause, silence: Silence}
}

type transport struct {
	next                  http.RoundTripper
	limit, pause, silence time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if silent := patienceOf(req.Context()).before(req.URL.Host); silent != nil {
		return nil, silent
	}
	defer progress.Wait(req.Context(), func() string { return "an answer of " + req.URL.Host })()
	limit := t.limit
	for attempt := 1; ; attempt++ {
		resp, made, err := t.try(req, limit)
		if err == nil || made {
			return resp, err
		}
		if req.Context().Err() != nil {
			return nil, givenUp(req)
		}
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			return nil, err // the server was reached
		}
		// No part of the request has been sent. A second attempt needs a body that can be read again.
		if attempt == attempts || req.Body != nil && req.GetBody == nil {
			return nil, &Error{req.URL.Host, err}
		}
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context())
			req.Body = body
		}
		limit = t.limit - t.pause
		select {
		case <-time.After(t.pause):
		case <-req.Context().Done():
			return nil, givenUp(req)
		}
	}
}

// givenUp returns the error after the request's context has ended before there was contact. After a deadline, the server counts as not
// reached.
func givenUp(req *http.Request) error {
	err := req.Context().Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{req.URL.Host, err}
	}
	return err
}

// try sends a request once. connected tells whether the request had a connection.
func (t *transport) try(req *http.Request, limit time.Duration) (_ *http.Response, connected bool, _ error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(limit, func() { cancel(errLimit(limit)) })
	var made atomic.Bool
	patience := patienceOf(req.Context())
	silent := &SilentError{req.URL.Host, patience.within(t.silence)}
	stop := func(cause error) {
		patience.remember(silent)
		cancel(cause)
	}
	server := &waiting{silent: silent, stop: stop}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if timer.Stop() {
			made.Store(true)
		}
	}, WroteRequest: func(httptrace.WroteRequestInfo) { server.begin() }}
	resp, err := t.next.RoundTrip(server.of(req.WithContext(httptrace.WithClientTrace(ctx, trace))))
	timer.Stop()
	server.end()
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrLimit) || errors.Is(cause, silent) {
			err = cause
		}
		cancel(nil)
		return nil, made.Load(), err
	}
	resp.Body = &body{Steady(resp.Body, silent, stop), cancel}
	return resp, true, nil
}

// body ends the request's context when the answer's body is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// Servers remembers which servers could be reached, so that all callers that need the same server find out together. It is safe for
// concurrent use.
type Servers struct {
	client *http.Client
	limit  time.Duration // of one request
	mu     sync.Mutex
	known  map[string]*server
}

// NewServers returns Servers that send requests through next. If next is nil, it uses Go's own transport.
func NewServers(next http.RoundTripper) *Servers {
	return &Servers{client: &http.Client{Transport: Transport(next)}, limit: answer, known: map[string]*server{}}
}

type server struct {
	mu      sync.Mutex
	checked bool
	err     error
}

// Check finds out whether it can reach the server of an http or https URL, and the servers to which that server redirects. Every answer
// counts as success. If a server cannot be reached, the error matches *Error.
func (s *Servers) Check(ctx context.Context, address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return err
	}
	one := s.server(at.Scheme + "://" + at.Host)
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.checked {
		return one.err
	}
	err = s.ask(ctx, address)
	if ctx.Err() == nil {
		one.checked, one.err = true, err
	}
	return err
}

func (s *Servers) server(name string) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[name] == nil {
		s.known[name] = &server{}
	}
	return s.known[name]
}

func (s *Servers) ask(ctx context.Context, address string) error {
	// Do not use the timeout of http.Client: its error would hide that there was no contact.
	bounded, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, http.MethodHead, address, nil)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err == nil {
		return resp.Body.Close()
	}
	if missed, ok := errors.AsType[*Error](err); ok {
		return missed // this error does not repeat the whole URL
	}
	return ctx.Err() // the server was reached; callers that need its answer judge it
}
