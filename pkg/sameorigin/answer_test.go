package sameorigin_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// secret has characters that are written differently in a URL, in HTML and in JSON.
const secret = `s3cr&t<"\x/+é`

// guards returns the transports of Bind, Registry and Download to a server.
func guards(t *testing.T, home *server) map[string]http.RoundTripper {
	t.Helper()
	return map[string]http.RoundTripper{
		"bind":     sameorigin.Bind(trusting(home), parse(t, home.URL)),
		"registry": sameorigin.Registry(trusting(home), parse(t, home.URL).Host),
		"download": sameorigin.Download(trusting(home)),
	}
}

// A server may repeat the request in its error answer, for debugging. The credential must not get into the client's error.
func TestRefusalsDoNotRepeatCredentials(t *testing.T) {
	basic := "git:" + secret
	encoded := base64.StdEncoding.EncodeToString([]byte(basic))
	requests := map[string]func(ctx context.Context, address string) *http.Request{}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + secret, "Private-Token": secret, "X-Vault-Token": secret, "Job-Token": secret,
	} {
		requests[name] = func(ctx context.Context, address string) *http.Request {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			req.Header.Set(name, value)
			return req
		}
	}
	requests["basic"] = func(ctx context.Context, address string) *http.Request {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		req.SetBasicAuth("git", secret)
		return req
	}
	requests["form"] = func(ctx context.Context, address string) *http.Request {
		form := url.Values{"username": {"git"}, "password": {secret}}
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return req
	}
	quoted, _ := json.Marshal(secret)
	echo := strings.Join([]string{
		secret, basic, encoded, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret), string(quoted),
		hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString([]byte("token=" + secret + "&x")), strings.ToLower(url.QueryEscape(secret)),
	}, "\n")
	titled := "<html><title>" + html.EscapeString(secret) + "</title>"
	for status, page := range map[int]string{400: "", 401: "", 403: titled, 404: "", 500: ""} {
		home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
			if page != "" {
				w.Header().Set("Content-Type", "text/html")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, page+strings.Repeat("x", 5000)+echo)
		})
		for way, guard := range guards(t, home) {
			for name, request := range requests {
				resp, err := guard.RoundTrip(request(t.Context(), home.URL))
				if err != nil {
					t.Errorf("%s, %s, %d: %v", way, name, status, err)
					continue
				}
				raw, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				text := string(raw)
				if err != nil || resp.StatusCode != status || !strings.Contains(text, "***") || int(resp.ContentLength) != len(text) {
					t.Errorf("%s, %s, %d: %q, %v", way, name, resp.StatusCode, text, err)
				}
				for said := range strings.SplitSeq(echo, "\n") {
					if strings.Contains(text, strings.Trim(said, `"`)) && (name == "basic" || !strings.Contains(said, encoded)) {
						t.Errorf("%s, %s, %d: %q is in it", way, name, status, said)
					}
				}
			}
		}
	}
}

// A server may put the credential into the address of a redirect. It gets neither into the error nor to the server of that address.
func TestRedirectsDoNotRepeatCredentials(t *testing.T) {
	const token = "canary-7f3a9c51e2"
	other := start(t, true, func(http.ResponseWriter, *http.Request) {})
	for name, to := range map[string]string{"another server": other.URL, "the same server": ""} {
		home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to+"/login?token="+token)
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		for way, guard := range guards(t, home) {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, home.URL+"/v2/a/blobs/b", nil)
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := (&http.Client{Transport: guard}).Do(req)
			switch {
			case err == nil:
				defer resp.Body.Close()
				if strings.Contains(resp.Request.URL.String(), token) {
					t.Errorf("%s, %s: the credential went to %s", way, name, resp.Request.URL)
				}
			case strings.Contains(err.Error(), token):
				t.Errorf("%s, %s: %v", way, name, err)
			}
		}
	}
	// A short password can be a word of a path, and a redirect within the server has to keep it.
	home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/harbor/fleet.git")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, home.URL, nil)
	req.SetBasicAuth("git", "harbor")
	resp, err := sameorigin.Bind(trusting(home), parse(t, home.URL)).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "/harbor/fleet.git" {
		t.Errorf("the redirect goes to %s", to)
	}
}

// Answers to requests without a credential, and answers without an error status, stay unchanged.
func TestAnswersStayAsTheyAre(t *testing.T) {
	texts := map[string]string{
		"text/plain": "s3cret", "application/json": `{"a":"s3cret"}`, "text/html": "apiVersion: v2\n# <html> s3cret\n", "": "s3cret",
	}
	for kind, text := range texts {
		home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		})
		for way, guard := range guards(t, home) {
			if got, err := do(t, &http.Client{Transport: bearer{guard}}, http.MethodGet, home.URL); got != text || err != nil {
				t.Errorf("%s, %s: %q, %v", way, kind, got, err)
			}
		}
		home.reply = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, text)
		}
		if got, err := do(t, &http.Client{Transport: guards(t, home)["bind"]}, http.MethodGet, home.URL); got != text || err != nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
}

// A web page instead of an answer is an error with the page's title. A web page with an error status becomes its title.
func TestPages(t *testing.T) {
	for name, tc := range map[string]struct{ page, want string }{
		"title":      {"\n<!DOCTYPE html>\n<html><head><title>\n Sign in &middot; Acme</title>", `the web page "Sign in · Acme"`},
		"controls":   {"<html><title>a\x1b[2J</title>", `the web page "a\x1b[2J"`},
		"none":       {"<html><body>" + strings.Repeat("<p>x</p>", 1<<20), "a web page without a title"},
		"xhtml":      {`<?xml version="1.0"?><!-- a --><!DOCTYPE html><html><title lang="de">Login</title>`, `the web page "Login"`},
		"long title": {"<HTML><TITLE>" + strings.Repeat("x", 5000) + "</TITLE>", `"` + strings.Repeat("x", 100) + `…"`},
	} {
		status := http.StatusOK
		home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, tc.page)
		})
		for way, guard := range guards(t, home) {
			client := &http.Client{Transport: guard}
			status = http.StatusOK
			_, err := do(t, client, http.MethodGet, home.URL)
			found := (*sameorigin.PageError)(nil)
			if !errors.As(err, &found) || !strings.Contains(err.Error(), tc.want) || found.Server != home.URL || diag.Hint(err) == "" {
				t.Errorf("%s, %s: %v (%s)", name, way, err, diag.Hint(err))
			}
			status = http.StatusServiceUnavailable
			if got, err := do(t, client, http.MethodGet, home.URL); err != nil || !strings.HasSuffix(got, tc.want) {
				t.Errorf("%s, %s: %q, %v", name, way, got, err)
			}
			resp, err := client.Head(home.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%s, %s: HEAD has the status %d", name, way, resp.StatusCode)
			}
		}
	}
}

// An error answer that breaks off gives a read error.
func TestBrokenRefusal(t *testing.T) {
	home := start(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "you sent Bearer s3cret")
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, home.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := bearer{guards(t, home)["bind"]}.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); string(text) != "you sent ***" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", text, err)
	}
}

// Go's transport quotes a header that it cannot parse, and a server may repeat the request there, too.
func TestBrokenHeadersDoNotRepeatCredentials(t *testing.T) {
	for name, answer := range map[string]func(got http.Header) string{
		"header": func(got http.Header) string {
			return "HTTP/1.1 401 no\r\nWWW-Authenticate: \x00" + got.Get("Authorization") + "\r\n\r\n"
		},
		"status": func(got http.Header) string { return got.Get("Authorization") + "\r\n\r\n" },
		"length": func(got http.Header) string {
			return "HTTP/1.1 200 OK\r\nContent-Length: " + got.Get("Authorization") + "\r\n\r\n"
		},
		"coding": func(got http.Header) string {
			return "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + got.Get("Authorization") + "\r\n\r\n"
		},
	} {
		home := start(t, true, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, answer(r.Header))
			_ = conn.Close()
		})
		for way, guard := range guards(t, home) {
			for _, secret := range []string{"canary-7f3a9c51e2", `canary"\7f3a9c51e2`} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, home.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+secret)
				resp, err := guard.RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
					t.Errorf("%s, %s: it is taken for an answer", way, name)
				} else if strings.Contains(err.Error(), "7f3a9c51e2") || !strings.Contains(err.Error(), "***") {
					t.Errorf("%s, %s: %v", way, name, err)
				}
			}
		}
	}
}

// The server also chooses the text of the status.
func TestStatusWords(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 403 Bearer s3cret "+strings.Repeat("x", 5000)+"\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	home := parse(t, "http://"+listener.Addr().String())
	resp, err := (&http.Client{Transport: bearer{sameorigin.Bind(http.DefaultTransport, home)}}).Get(home.String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(resp.Status) > 110 || !strings.HasPrefix(resp.Status, "403 *** x") {
		t.Errorf("the status is %q", resp.Status)
	}
}
