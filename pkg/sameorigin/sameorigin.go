// Package sameorigin keeps a credential at its server, and out of the errors that quote this server's answers. Every client of fleetctl
// with a credential sends its requests through this package.
// Go's own client follows a redirect to any server. Clients that add a token to each request (the clients of forges, of Kubernetes and of
// registries) add the token to the redirected request, too.
package sameorigin

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Error says that a request was not sent, because it would have gone to another server than the credential's server.
type Error struct {
	// From and To are scheme and host of the two servers.
	From, To string
}

// Error names both servers, and nothing else of their addresses: a query may hold what the first one was told.
func (e *Error) Error() string {
	return fmt.Sprintf("%q points to %q, which is not asked: the credential is not for that server", e.From, e.To)
}

// ClearError says that a credential was not sent, because it would have gone over http.
type ClearError struct {
	// To are scheme and host of the server.
	To string
}

// Error names the server.
func (e *ClearError) Error() string {
	return fmt.Sprintf("%q is asked without a credential only: http is not encrypted", e.To)
}

// Same tells whether two URLs are of one server: scheme, host and port. A subdomain is another server, and so is the same host without TLS.
func Same(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && host(a) == host(b) && port(a) == port(b)
}

// Of is scheme and host of a URL, as errors have it.
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

// Bind refuses every request to another server than the server of home, whatever caused the request: a redirect, a link to the next page,
// an address in an answer. The error matches *Error, or *PageError for an answer that is a page for people. An answer that is an error does
// not repeat the credential. The same holds for Registry and Download.
func Bind(next http.RoundTripper, home *url.URL) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) {
		if !Same(home, req.URL) {
			return nil, &Error{From: Of(home), To: Of(req.URL)}
		}
		return req, nil
	}}
}

// Registry is for the clients of a registry (HOST or HOST:PORT), which are sent to other servers by design: content lies in an object
// store, and a service that the registry names gives out tokens. What a redirect may take to another server is a GET of content, and it
// goes there without a credential; everything else that is redirected elsewhere is refused, and so is every way from https to http. A
// credential goes over http to this machine only, where no service but the registry itself gets it. The error matches *Error or
// *ClearError.
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

// Download is for what is fetched without a credential of ours: it may come from anywhere, but not from https by way of http. The error
// matches *Error.
func Download(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) {
		if first, _ := way(req); downgraded(req) {
			return nil, &Error{From: Of(first.URL), To: Of(req.URL)}
		}
		return req, nil
	}}
}

// Screen is for a client that takes no redirect, and whose requests go to servers that its own library chooses: an answer that is an error
// does not repeat the credential of the request, as with Bind.
func Screen(next http.RoundTripper) http.RoundTripper {
	return &guard{next: next, allow: func(req *http.Request) (*http.Request, error) { return req, nil }}
}

// way goes back from a request over the redirects that led to it: to the first one, and whether any on the way was for another server.
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

// downgraded tells whether the way to a request led from https to something else.
func downgraded(req *http.Request) bool {
	for at := req; at.Response != nil && at.Response.Request != nil; at = at.Response.Request {
		if strings.EqualFold(at.Response.Request.URL.Scheme, "https") && !strings.EqualFold(at.URL.Scheme, "https") {
			return true
		}
	}
	return false
}

// inClear tells whether a request takes a credential over http. A POST of somebody who pulls is for a token, with one in its body.
func inClear(req *http.Request) bool {
	return !strings.EqualFold(req.URL.Scheme, "https") && (req.Header.Get("Authorization") != "" || req.Method == http.MethodPost)
}

// IsLoopback tells whether host, without a port or brackets, is this machine. Names but localhost are not resolved: one that begins like an
// address is another machine's.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// isContent tells whether a request is for what its digest proves, in the way that registries name it: /v2/<name>/blobs/<digest>.
func isContent(req *http.Request) bool {
	return (req.Method == http.MethodGet || req.Method == http.MethodHead) &&
		strings.HasPrefix(req.URL.Path, "/v2/") && strings.Contains(req.URL.Path, "/blobs/")
}

// guard looks at each request before it is sent.
type guard struct {
	next  http.RoundTripper
	allow func(*http.Request) (*http.Request, error)
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	allowed, err := g.allow(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // the one that says more is err
		}
		return nil, err
	}
	resp, err := g.next.RoundTrip(allowed)
	if err != nil {
		return nil, withoutProxyPassword(err)
	}
	if resp, err = screened(allowed, resp); err != nil {
		return nil, err
	}
	if allowed != req {
		resp.Request = req // the way back of the next redirect
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go find the transport beneath.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }
