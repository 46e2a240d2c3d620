package sameorigin

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// NewTransport is a transport of its own: Go's, which also trusts the authorities in ca (PEM). found tells whether there is one in it.
func NewTransport(ca []byte) (_ *http.Transport, found bool) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		base = &http.Transport{Proxy: http.ProxyFromEnvironment}
	}
	rt := base.Clone()
	if len(ca) == 0 {
		return rt, false
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // Windows and stripped-down systems: then only these
	}
	found = pool.AppendCertsFromPEM(ca)
	rt.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return rt, found
}

// withoutProxyPassword takes the user and password of a proxy out of an error: one whose address cannot be read is quoted by Go with all
// that is in it.
func withoutProxyPassword(err error) error {
	text := err.Error()
	clean := text
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		at := strings.LastIndexByte(os.Getenv(name), '@')
		if at < 0 {
			continue
		}
		user := os.Getenv(name)[:at]
		if _, after, ok := strings.Cut(user, "://"); ok {
			user = after
		}
		quoted := strconv.Quote(user)
		for _, secret := range []string{user, quoted[1 : len(quoted)-1]} {
			if secret != "" {
				clean = strings.ReplaceAll(clean, secret, "***")
			}
		}
	}
	if clean == text {
		return err
	}
	return &cleaned{text: clean, err: err}
}

// cleaned is an error whose text is safe to print. It matches what the error matches.
type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }

// Display is a URL as it may be printed: without user, password and query.
func Display(raw string) string {
	bare := !strings.Contains(raw, "://") // a kubeconfig may have HOST:PORT
	if bare {
		raw = "//" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "an address that cannot be read" // the error would repeat it
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if bare {
		return strings.TrimPrefix(u.String(), "//")
	}
	return u.String()
}
