// Package sameorigin keeps a credential at its server, and out of errors that quote the server's answers. Every client of fleetctl with a
// credential sends its requests through this package. It is needed because Go's own client follows a redirect to any server. Clients that
// add a token to each request (the clients of forges, Kubernetes and registries) also add it to the redirected request.
package sameorigin

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Error says that a request was not sent, because it would have gone to another server than the one of the credential.
type Error struct {
	// From and To are the scheme and host of the two servers.
	From, To string
}

// Error names both servers, and no other part of their URLs: a query may contain secrets.
func (e *Error) Error() string {
	return fmt.Sprintf("%q points to %q, which gets no request: the credential is not for that server", e.From, e.To)
}

// ClearError says that a credential was not sent, because it would have gone over http.
type ClearError struct {
	// To is the scheme and host of the server.
	To string
}

// Error names the server.
func (e *ClearError) Error() string {
	return fmt.Sprintf("%q gets no credential, because http is not encrypted", e.To)
}

// Same tells whether two URLs belong to the same server: scheme, host and port are equal. A subdomain is another server. The same host
// without TLS is another server too.
func Same(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && host(a) == host(b) && port(a) == port(b)
}

// Of returns the scheme and host of a URL, for errors.
func Of(u *url.URL) string { return strings.ToLower(u.Scheme) + "://" + u.Host }

func host(u *url.URL) string {
	name := u.Hostname()
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String()
	}
	return strings.ToLower(name)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return strings.TrimLeft(p, "0")
	}
	switch strings.ToLower(u.Scheme) {
	case "http":
		return "80"
	case "https":
		return "443"
	case "ssh":
		return "22"
	}
	return ""
}

// Bind returns next with a guard that refuses every request to another server than the server of home. It does not matter what caused the
// request: a redirect, a link to the next page, or an address in an answer. The error matches *Error, or *PageError for an answer that is a
// web page for people. An error answer does not repeat the credential. The same holds for Registry and Download.
func Bind(next http.RoundTripper, home *url.URL) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) {
		if !Same(home, req.URL) {
			return nil, &Error{From: Of(home), To: Of(req.URL)}
		}
		return req, nil
	}}
}

// Registry returns next with a guard for clients of a registry (HOST or HOST:PORT). By design, a registry sends its clients to other
// servers: to an object store for content, and to a service for tokens. A redirect to another server is followed only for a GET or HEAD of
// content, and without a credential. Every other redirect to another server is refused, and so is every redirect from https to http. A
// credential goes over http only to the registry itself, and only on this machine. The error matches *Error or *ClearError.
func Registry(next http.RoundTripper, registry string) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) {
		first, left := way(req)
		switch {
		case !left && inClear(req) && !(IsLoopback(host(req.URL)) && req.URL.Host == registry):
			return nil, &ClearError{To: Of(req.URL)}
		case !left:
			return req, nil
		case downgraded(req), !isContent(first):
			return nil, &Error{From: Of(first.URL), To: Of(req.URL)}
		}
		bare := req.Clone(req.Context())
		bare.Header = http.Header{}
		for _, name := range []string{"Accept", "Range", "User-Agent"} {
			if values := req.Header.Values(name); len(values) > 0 {
				bare.Header[name] = values
			}
		}
		bare.URL.User = nil
		return bare, nil
	}}
}

// Download returns next with a guard for content that is fetched without a credential. The content may come from any server, but a redirect
// from https to http is refused. The error matches *Error.
func Download(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) {
		if first, _ := way(req); downgraded(req) {
			return nil, &Error{From: Of(first.URL), To: Of(req.URL)}
		}
		return req, nil
	}}
}

// Screen returns next with a guard for a client that follows no redirects, and whose library chooses the servers. As with Bind, an error
// answer does not repeat the credential of the request.
func Screen(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) { return req, nil }}
}

// way follows the redirects that led to a request back to the first request. left tells whether any of them went to another server than the
// first.
func way(req *http.Request) (first *http.Request, left bool) {
	var hops []*http.Request
	for first = req; first.Response != nil && first.Response.Request != nil; first = first.Response.Request {
		hops = append(hops, first)
	}
	for _, hop := range hops {
		left = left || !Same(first.URL, hop.URL)
	}
	return first, left
}

// downgraded tells whether a redirect on the way to a request led from https to another scheme.
func downgraded(req *http.Request) bool {
	for at := req; at.Response != nil && at.Response.Request != nil; at = at.Response.Request {
		if strings.EqualFold(at.Response.Request.URL.Scheme, "https") && !strings.EqualFold(at.URL.Scheme, "https") {
			return true
		}
	}
	return false
}

// inClear tells whether a request sends a credential over http. A POST counts too: a client that pulls uses POST only to get a token, with
// a credential in the body.
func inClear(req *http.Request) bool {
	return !strings.EqualFold(req.URL.Scheme, "https") && (req.Header.Get("Authorization") != "" || req.Method == http.MethodPost)
}

// IsLoopback tells whether host, without port or brackets, is this machine. It resolves no name except localhost: a name that begins like a
// loopback address can be another machine.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// isContent tells whether a request is for content that its digest verifies. Registries serve such content at /v2/<name>/blobs/<digest>.
func isContent(req *http.Request) bool {
	return (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		strings.HasPrefix(req.URL.Path, "/v2/") && strings.Contains(req.URL.Path, "/blobs/")
}

// guard checks each request before it is sent.
type guard struct {
	next  http.RoundTripper
	allow func(*http.Request) (*http.Request, error)
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	allowed, err := g.allow(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // err says more than an error of Close
		}
		return nil, err
	}
	resp, err := g.next.RoundTrip(allowed)
	if err != nil {
		return nil, withoutProxyPassword(withoutSecrets(err, allowed))
	}
	if resp, err = screened(allowed, resp); err != nil {
		return nil, err
	}
	if allowed != req {
		resp.Request = req // way needs req after the next redirect
	}
	return resp, nil
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }
