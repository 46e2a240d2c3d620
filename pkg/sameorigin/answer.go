package sameorigin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/guises"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// The limits of what is read of an answer before the caller gets it.
const (
	// maxRefusal bounds an error answer, in bytes. The rest is dropped.
	maxRefusal = 4 << 20
	// maxPage bounds the part of a web page that is searched for its title, in bytes.
	maxPage = 16 << 10
	// maxTitle bounds a title, in characters.
	maxTitle = 100
	// maxStatus bounds the text of a status, in bytes.
	maxStatus = 100
	// maxForm bounds the request body that is searched for credentials, in bytes.
	maxForm = 64 << 10
	// leastSecret is the minimum length of a credential to search for. Shorter ones are part of many words.
	leastSecret = 5
	// leastToken is the minimum length of a credential that is not a word.
	leastToken = 16
)

// PageError says that a server has answered with a web page for people. A proxy does this if somebody has to log in first.
type PageError struct {
	// Server is the scheme and host of the server.
	Server string
	// Title is the title of the page, or "".
	Title string
}

// Error names the server and the title of its page.
func (e *PageError) Error() string { return fmt.Sprintf("%q answers with %s", e.Server, page(e.Title)) }

// page describes a web page for an error.
func page(title string) string {
	if title == "" {
		return "a web page without a title"
	}
	return fmt.Sprintf("the web page %q", title)
}

// pageHint is the hint of a PageError.
const pageHint = "this is no answer to a program: look in a browser whether the server, or a proxy before it, wants a login; and check " +
	"the address and the proxy settings (HTTPS_PROXY, NO_PROXY)"

// screened returns an answer that is safe to quote. Errors quote answers, and CI logs contain errors. Some servers repeat the request in an
// error answer, so screened removes the credential of the request from it. It replaces a web page in an error answer by its title. If the
// answer is a web page without an error status, it returns a *PageError.
func screened(req *http.Request, resp *http.Response) (*http.Response, error) {
	refused := resp.StatusCode >= http.StatusMultipleChoices
	if refused {
		resp.Status = plain.Clip(hide(resp.Status, secretsOf(req)), maxStatus)
		hideInLocation(req, resp)
	}
	if req.Method == http.MethodHead || resp.Body == nil || resp.Body == http.NoBody {
		return resp, nil
	}
	if isPage(resp) {
		start, _ := io.ReadAll(io.LimitReader(resp.Body, maxPage)) // a page that cannot be read has no title
		switch title, found := titleOf(start); {
		case found && refused:
			_ = resp.Body.Close() // the title was read
			resp.Header.Set("Content-Type", "text/plain; charset=utf-8")
			replaceBody(resp, []byte(page(hide(title, secretsOf(req)))), nil)
			return resp, nil
		case found:
			_ = resp.Body.Close() // the title was read
			return nil, diag.Wrap("", &PageError{Server: Of(req.URL), Title: hide(title, secretsOf(req))}, pageHint)
		}
		resp.Body = &joined{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
	}
	if !refused {
		return resp, nil
	}
	secrets := secretsOf(req)
	if len(secrets) == 0 {
		return resp, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close() // err says more than an error of Close
	replaceBody(resp, []byte(hide(string(text), secrets)), err)
	return resp, nil
}

// hideInLocation removes the credential of the request from the address of a redirect. Errors quote this address, and the server that it
// leads to would get the credential. A short credential stays in an address of the same server, because it can be a word of a path.
func hideInLocation(req *http.Request, resp *http.Response) {
	location := resp.Header.Get("Location")
	if location == "" {
		return
	}
	secrets := secretsOf(req)
	if to, err := req.URL.Parse(location); err == nil && Same(req.URL, to) {
		secrets = slices.DeleteFunc(secrets, func(secret string) bool { return len(secret) < leastToken })
	}
	resp.Header.Set("Location", hide(location, secrets))
}

// isPage tells whether the content type of an answer is a web page.
func isPage(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}

var (
	beginning = regexp.MustCompile(`(?is)^\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b`)
	titled    = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title`)
)

// titleOf returns the title of the web page that begins with start, or "". found tells whether it is a web page: some servers give every
// text this content type.
func titleOf(start []byte) (title string, found bool) {
	if !beginning.Match(start) {
		return "", false
	}
	match := titled.FindSubmatch(start)
	if match == nil {
		return "", true
	}
	words := []rune(strings.Join(strings.Fields(html.UnescapeString(string(match[1]))), " "))
	if len(words) > maxTitle {
		return string(words[:maxTitle]) + "…", true
	}
	return string(words), true
}

// replaceBody replaces the body of an answer. If err is not nil, reading the body ends with err.
func replaceBody(resp *http.Response, body []byte, err error) {
	var all io.Reader = bytes.NewReader(body)
	resp.ContentLength = int64(len(body))
	if err != nil {
		all, resp.ContentLength = io.MultiReader(all, &failing{err}), -1
	}
	resp.Header.Del("Content-Length")
	resp.Body = io.NopCloser(all)
}

// joined is a body after its beginning was read.
type joined struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

// Read implements io.Reader.
func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// hide returns text without the secrets.
func hide(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// Without returns text without the credentials, in every spelling. It is for credentials in the body of a request, which the guards do not
// know, and for clients that parse an answer before they put it into an error.
func Without(text string, credentials ...string) string { return hide(text, written(credentials)) }

// carriers are the request headers with credentials.
var carriers = []string{
	"Authorization", "Proxy-Authorization", "Private-Token", "Job-Token", "X-Vault-Token", "X-Amz-Security-Token", "Cookie",
}

// fields are the form fields with credentials. A client of a registry sends them to get a token.
var fields = []string{"password", "refresh_token", "client_secret", "assertion"}

// secretsOf returns the credentials of a request in every spelling that an answer may have, the longest first.
func secretsOf(req *http.Request) []string {
	var values []string
	for _, name := range carriers {
		for _, value := range req.Header.Values(name) {
			values = append(values, value)
			scheme, credential, _ := strings.Cut(value, " ")
			values = append(values, credential)
			if decoded, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.EqualFold(scheme, "basic") {
				_, password, _ := strings.Cut(string(decoded), ":")
				values = append(values, string(decoded), password)
			}
		}
	}
	for _, name := range fields {
		values = append(values, formOf(req)[name]...)
	}
	return written(values)
}

// written returns all spellings of credentials that are long enough to search for, the longest first.
func written(credentials []string) (all []string) {
	for _, credential := range credentials {
		for _, spelling := range spellings(credential) {
			if len(spelling) >= leastSecret && !slices.Contains(all, spelling) {
				all = append(all, spelling)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) }) // a spelling may be part of a longer one
	return all
}

// spellings returns value as it is written in plain text, in HTML, and in all forms that guises knows.
func spellings(value string) []string {
	return slices.Concat([]string{value, html.EscapeString(value)}, guises.Escaped(value), guises.Encoded(value))
}

// formOf returns the form that a request has sent, or nil.
func formOf(req *http.Request) url.Values {
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" || req.GetBody == nil || req.ContentLength > maxForm {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxForm))
	if err != nil {
		return nil
	}
	values, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil
	}
	return values
}
