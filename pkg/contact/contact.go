// Package contact limits the time until a command knows that a server cannot be reached. A download may take as long as it needs, because
// networks may be slow, while it goes on: a server that stops in the middle is given up.
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
)

// Limits of a contact: two attempts with a pause between them end within eight seconds. So a command without a network reports this within
// ten seconds, while somebody still looks at it.
const (
	// Limit is how long an attempt may take: finding the address, connecting, a proxy, TLS. The pause before the second is a part of it.
	Limit = 4 * time.Second

	attempts = 2
	pause    = time.Second
	// answer bounds what Check waits for in all.
	answer = attempts*Limit + pause
)

// ErrLimit is in the Error of an attempt that took too long.
var ErrLimit = errors.New("no answer")

func errLimit(limit time.Duration) error { return fmt.Errorf("%w within %s", ErrLimit, limit) }

// Error says that a server was not reached: nothing was sent to it.
type Error struct {
	// Host as in the URL, with the port if it has one.
	Host string
	// Err is why the last attempt failed.
	Err error
}

// Error names the host and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s cannot be reached: %v", e.Host, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Transport returns next with first contact bounded and tried twice; nil is Go's own transport, with the proxy of the environment. Where
// no contact is made the error matches Error. Where a server that was reached does not answer, or does not go on with its answer, it
// matches SilentError.
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

// RoundTrip is part of http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
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
			return nil, err // it was reached
		}
		// No part of the request has been sent. Its body, if it has one, can be read again, or nobody has read it.
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

// givenUp is the error for whoever stopped waiting before there was contact: where the time was up, the server was not reached.
func givenUp(req *http.Request) error {
	err := req.Context().Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{req.URL.Host, err}
	}
	return err
}

// try sends a request once and tells whether there was a connection for it.
func (t *transport) try(req *http.Request, limit time.Duration) (_ *http.Response, connected bool, _ error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(limit, func() { cancel(errLimit(limit)) })
	var made atomic.Bool
	silent := &SilentError{req.URL.Host, t.silence}
	server := &waiting{silent: silent, stop: cancel}
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
	resp.Body = &body{Steady(resp.Body, silent, cancel), cancel}
	return resp, true, nil
}

// body ends the request's context with the answer's body.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// Servers remembers which servers could be reached, so that all callers who need the same server find out at once. Several goroutines may
// use it.
type Servers struct {
	client *http.Client
	limit  time.Duration // of a question
	mu     sync.Mutex
	known  map[string]*server
}

// NewServers knows none yet. It asks over next; nil is Go's own transport.
func NewServers(next http.RoundTripper) *Servers {
	return &Servers{client: &http.Client{Transport: Transport(next)}, limit: answer, known: map[string]*server{}}
}

type server struct {
	mu      sync.Mutex
	checked bool
	err     error
}

// Check finds out whether the server of an http or https URL can be reached, and the servers that it redirects to. Every answer counts as
// success. If a server cannot be reached, the error matches Error.
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
	// Do not use the client's own limit: its error would no longer tell that there was no contact.
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
		return missed // without the whole URL
	}
	return ctx.Err() // it was reached, and what it answers is for those to judge who ask it for something
}
