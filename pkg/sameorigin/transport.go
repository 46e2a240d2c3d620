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

// NewTransport returns a copy of Go's default transport that also trusts the certificate authorities in ca (PEM). found tells whether ca
// contains a certificate.
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
		pool = x509.NewCertPool() // a minimal system has no pool: trust only ca
	}
	found = pool.AppendCertsFromPEM(ca)
	rt.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return rt, found
}

// withoutProxyPassword removes the user and password of a proxy from an error. Go quotes a proxy address that it cannot parse.
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

// withoutSecrets removes the credentials of a request from the error of its transport. Go quotes the part of an answer that it cannot
// parse, and the server may have repeated the request there.
func withoutSecrets(err error, req *http.Request) error {
	text := err.Error()
	clean := hide(text, secretsOf(req))
	if clean == text {
		return err
	}
	return &cleaned{text: clean, err: err}
}

// cleaned is an error with another text that is safe to print. It matches the same errors.
type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }

// Display returns a URL for messages: without user, password, query and fragment.
func Display(raw string) string {
	bare := !strings.Contains(raw, "://") // a kubeconfig may have HOST:PORT
	if bare {
		raw = "//" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "an address that cannot be read" // the error would repeat the address
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if bare {
		return strings.TrimPrefix(u.String(), "//")
	}
	return u.String()
}
