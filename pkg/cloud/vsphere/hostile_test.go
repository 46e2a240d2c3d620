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
	"github.com/vmware/govmomi/vim25/types"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
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

// A vCenter that does not answer as it should is a problem with the way on, and not an empty list.
func TestProblemsHaveHints(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no healthy upstream", code) }
	}
	for name, c := range map[string]struct {
		text   string
		answer http.HandlerFunc
		hint   string
	}{
		"its services start":             {"<RetrieveServiceContent", status(http.StatusServiceUnavailable), "5480 shows whether the services"},
		"its lists are not there":        {"RetrievePropertiesEx", status(http.StatusBadGateway), "5480 shows whether the services"},
		"its modules do not run":         {"com/vmware/cis/session", status(http.StatusServiceUnavailable), "5480 shows whether the services"},
		"somebody has ended the session": {"RetrievePropertiesEx", notAuthenticated, "run the same command again"},
	} {
		t.Run(name, func(t *testing.T) {
			found := behind(t, c.text, c.answer).Find(t.Context(), fleet, nil)
			if len(found.Problems) == 0 || !strings.Contains(found.Problems[0].Hint, c.hint) {
				t.Errorf("problems: %.600v", found.Problems)
			}
		})
	}
}

// So is a deletion that stops there.
func TestDeletionHasHints(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		hint   string
	}{
		"its services start": {
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }, "5480 shows whether the services",
		},
		"the session has ended": {notAuthenticated, "run the same command again"},
	} {
		t.Run(name, func(t *testing.T) {
			a := behind(t, "RetrievePropertiesEx", c.answer)
			a.refs = map[[2]string]types.ManagedObjectReference{{kindMachine, "/DC0/vm/one"}: {Type: "VirtualMachine", Value: "vm-1"}}
			err := a.Delete(t.Context(), cloud.Resource{Kind: kindMachine, ID: "/DC0/vm/one"})
			if err == nil || !strings.Contains(diag.Hint(err), c.hint) {
				t.Errorf("%v, hint %q", err, diag.Hint(err))
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	gone := httptest.NewTLSServer(nil)
	gone.Close()
	a, err := New(strings.TrimPrefix(gone.URL, "https://"), "user", password, "")
	if err != nil {
		t.Fatal(err)
	}
	found := a.Find(t.Context(), fleet, nil)
	if len(found.Problems) == 0 || !strings.Contains(found.Problems[0].Hint, ServerVariable) {
		t.Errorf("problems: %v", found.Problems)
	}
}

// notAuthenticated answers as a vCenter does to a session that has ended.
func notAuthenticated(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprint(w, `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" `+
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode>`+
		`<faultstring>The session is not authenticated.</faultstring><detail><NotAuthenticatedFault xmlns="urn:vim25" xsi:type="NotAuthenticated">`+
		`</NotAuthenticatedFault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`)
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

// soapSays answers with the body of an answer of SOAP.
func soapSays(body func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" `+
			`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>%s</soapenv:Body></soapenv:Envelope>`, body())
	}
}

// A list whose pages never end, or that ends before its announced number, is a problem.
func TestListsWithoutEnd(t *testing.T) {
	before := mostPages
	mostPages = 30
	t.Cleanup(func() { mostPages = before })
	volumes := func(some string, total int) string {
		return fmt.Sprintf(`<CnsQueryVolumeResponse xmlns="urn:vsan"><returnval>%s<cursor><offset>0</offset><limit>500</limit>`+
			`<totalRecords>%d</totalRecords></cursor></returnval></CnsQueryVolumeResponse>`, some, total)
	}
	const volume = `<volumes><volumeId><id>a</id></volumeId><name>a</name><volumeType>BLOCK</volumeType></volumes>`
	for name, tc := range map[string]struct {
		text string
		page func(asked int) string
		says string
	}{
		"volumes": {"CnsQueryVolume", func(asked int) string { return volumes(volume, asked+1) }, "the list does not end after 30 pages"},
		"too few": {"CnsQueryVolume", func(int) string { return volumes("", 7) }, "vCenter has 7, and lists only 0"},
		"machines": {"RetrievePropertiesEx", func(asked int) string {
			if asked%31 == 1 { // the first request of a list, before mostPages further ones
				return `<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><token>1</token></returnval></RetrievePropertiesExResponse>`
			}
			return fmt.Sprintf(`<ContinueRetrievePropertiesExResponse xmlns="urn:vim25"><returnval><token>%d</token></returnval>`+
				`</ContinueRetrievePropertiesExResponse>`, asked)
		}, "its lists do not end after 30 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			answer := soapSays(func() string { return tc.page(asked) })
			a := behind(t, tc.text, func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked > 200 { // without a bound, the test ends nevertheless
					w.WriteHeader(http.StatusGone)
					return
				}
				answer(w, r)
			})
			if found := a.Find(t.Context(), fleet, nil); !strings.Contains(fmt.Sprint(found.Problems), tc.says) {
				t.Errorf("after %d pages: %.400v", asked, found.Problems)
			}
		})
	}
}

// An answer that belongs to another request is a problem, and does not end the program.
func TestAnswersOfAnotherKind(t *testing.T) {
	for _, text := range []string{"<RetrieveServiceContent", "<Login", "CreateContainerView", "RetrievePropertiesEx", "CnsQueryVolume"} {
		t.Run(text, func(t *testing.T) {
			found := behind(t, text, soapSays(func() string { return `<LogoutResponse xmlns="urn:vim25"></LogoutResponse>` })).
				Find(t.Context(), fleet, nil)
			if !strings.Contains(fmt.Sprint(found.Problems), "its answer does not belong to the request") {
				t.Errorf("problems: %.400v", found.Problems)
			}
		})
	}
}

// A machine is not deleted if vCenter does not tell whose it is.
func TestDeleteOfAnUnknownOwner(t *testing.T) {
	a := behind(t, "RetrievePropertiesEx", soapSays(func() string {
		return `<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval></returnval></RetrievePropertiesExResponse>`
	}))
	a.refs = map[[2]string]types.ManagedObjectReference{{kindMachine, "/DC0/vm/x"}: {Type: "VirtualMachine", Value: "vm-1"}}
	err := a.Delete(t.Context(), cloud.Resource{Kind: kindMachine, ID: "/DC0/vm/x", Fleet: fleet, Cluster: "shop"})
	if err == nil || err.Error() != "vCenter does not tell whose it is now" {
		t.Error(err)
	}
}
