package gitserve

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// recorder is a connection as far as the handler uses it.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetReadDeadline(time.Time) error  { return nil }
func (recorder) SetWriteDeadline(time.Time) error { return nil }

// For every request: a client without the password learns nothing. A client with the password can make two kinds of requests to git, and
// ask for the server's health. The folder to serve is empty, so a request that reaches git answers 500.
func FuzzHandler(f *testing.F) {
	const login = "Authorization: Basic ZmxlZXRjdGw6cGFzc3dvcmQ=\r\n" // fleetctl:password
	for _, request := range []string{
		"GET /fleet.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: a\r\nGit-Protocol: version=2\r\n" + login + "\r\n",
		"GET /fleet.git/info/refs?service=git-receive-pack HTTP/1.1\r\nHost: a\r\n" + login + "\r\n",
		"GET /healthz HTTP/1.1\r\nHost: a\r\n" + login + "\r\n",
		"GET /fleet.git/HEAD HTTP/1.0\r\n" + login + "\r\n",
		"GET /fleet.git/../fleet.git/info/refs HTTP/1.1\r\nHost: a\r\nAuthorization: Basic OnBhc3N3b3Jk\r\n\r\n",
		"POST /fleet.git/git-upload-pack HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-git-upload-pack-request\r\nContent-Length: 8\r\n" +
			login + "\r\n00000009",
		"POST /fleet.git/git-upload-pack HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-git-upload-pack-request\r\nContent-Encoding: " +
			"gzip\r\nTransfer-Encoding: chunked\r\n" + login + "\r\n4\r\n\x1f\x8b\x08\x00\r\n0\r\n\r\n",
		"POST /fleet.git/git-receive-pack HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	h := NewHandler(f.TempDir(), Credentials{Username: "fleetctl", Password: "password"}, nil)
	h.identity = "identity"
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(raw))))
		if err != nil {
			return
		}
		username, password, _ := request.BasicAuth()
		w := recorder{httptest.NewRecorder()}
		h.ServeHTTP(w, request)
		if version := protocolVersion(request.Header); version < 0 || version > 2 {
			t.Errorf("protocol %d", version)
		}
		if username != "fleetctl" || password != "password" {
			if w.Code != http.StatusUnauthorized || w.Header().Get(identityHeader) != "" || w.Body.String() != "credentials needed\n" {
				t.Errorf("%d %v %q for %q", w.Code, w.Header(), w.Body, raw)
			}
			return
		}
		at, allowed := request.Method+" "+request.URL.Path, map[int]bool{}
		switch at {
		case "GET " + healthPath:
			allowed[http.StatusNoContent] = true
		case "GET " + infoRefs:
			allowed[http.StatusForbidden] = request.URL.Query().Get("service") != "git-upload-pack"
			allowed[http.StatusInternalServerError] = !allowed[http.StatusForbidden]
		case "POST " + packRequest:
			for _, code := range []int{
				http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
				http.StatusInternalServerError,
			} {
				allowed[code] = true
			}
		case "POST " + RepoPath + "/git-receive-pack":
			allowed[http.StatusForbidden] = true
		default:
			allowed[http.StatusNotFound] = true
		}
		if !allowed[w.Code] {
			t.Errorf("%s: %d %q", at, w.Code, w.Body)
		}
	})
}
