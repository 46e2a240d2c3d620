package vsphere

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// behind returns an account at a proxy that passes every request on to a vCenter, except requests with the text in their body or path.
// These get answer.
func behind(t *testing.T, text string, answer http.HandlerFunc) *Account {
	t.Helper()
	v := newVCenter(t, 1)
	target := *v.server.URL
	target.User, target.Path = nil, ""
	proxy := httputil.NewSingleHostReverseProxy(&target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(text)) || strings.Contains(r.URL.Path, text) {
			answer(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a, err := New(strings.TrimPrefix(server.URL, "https://"), v.login.Username(), password, soap.ThumbprintSHA1(server.Certificate()))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Passwords and sessions do not follow a redirect of the vCenter's APIs. After redirects other than 302, Go cannot repeat the requests,
// because it cannot send the bodies of govmomi twice.
func TestRedirects(t *testing.T) {
	for name, text := range map[string]string{
		"the login": "<Login", "the API of modules": "com/vmware/cis/session", "volumes": "CnsQueryVolume",
	} {
		for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				var asked atomic.Int32
				stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
				t.Cleanup(stranger.Close)
				a := behind(t, text, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, stranger.URL+r.URL.Path, status) })
				found := a.Find(t.Context(), fleet, nil)
				says := "gets no request: the credential is not for that server"
				if status != http.StatusFound {
					says = "307 Temporary Redirect"
				}
				if len(found.Problems) == 0 || !strings.Contains(fmt.Sprint(found.Problems), says) {
					t.Errorf("problems: %v", found.Problems)
				}
				if asked.Load() > 0 {
					t.Error("the other server was asked")
				}
			})
		}
	}
}

// An error quotes the answer of a vCenter in brief and without the password, which the vCenter has just received.
func TestHostileFaults(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a fault": func(w http.ResponseWriter, r *http.Request) {
			said, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/xml")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault>`+
				`<faultcode>x</faultcode><faultstring>%s%s</faultstring></soapenv:Fault></soapenv:Body></soapenv:Envelope>`,
				html.EscapeString(string(said)), strings.Repeat("long ", 1<<18))
		},
		"a status": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.Copy(w, r.Body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := behind(t, "<Login", answer).Find(t.Context(), fleet, nil)
			if len(found.Problems) != 1 {
				t.Fatalf("problems: %v", found.Problems)
			}
			if text := found.Problems[0].Text; strings.Contains(text, password) || len(text) > 2*cloud.MaxSaid {
				t.Errorf("%d bytes: %.500q", len(text), text)
			}
		})
	}
}

// What a vCenter never ends to say is not kept in memory.
func TestAnswersWithoutEnd(t *testing.T) {
	before := maxAnswer
	maxAnswer = 1 << 20
	t.Cleanup(func() { maxAnswer = before })
	found := behind(t, "<Login", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, err := io.WriteString(w, `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>`)
		for piece := strings.Repeat("<a></a>", 1<<12); err == nil; {
			_, err = io.WriteString(w, piece)
		}
	}).Find(t.Context(), fleet, nil)
	if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Text, "the answer is too large: more than 1 MiB") {
		t.Errorf("problems: %.500v", found.Problems)
	}
}
