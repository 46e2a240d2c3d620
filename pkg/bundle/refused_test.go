package bundle_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The refusal of a registry, or of a proxy before it, is quoted in brief and without the credential that it repeats. The hint follows from
// the status. This holds for charts, digests and snapshots.
func TestRegistryRefuses(t *testing.T) {
	const password = "s3cret-word"
	credential := base64.StdEncoding.EncodeToString([]byte("ada:" + password))
	home := t.TempDir() // one for all, because a variable of the process names it
	t.Setenv("DOCKER_CONFIG", home)
	auths := map[string]any{}
	long := strings.Repeat("no ", 10_000)
	for name, tc := range map[string]struct {
		status     int
		kind, body string
		want, hint string
	}{
		"forbidden": {403, "application/json", `{"errors":[{"code":"DENIED","message":"%s","detail":"` + long + `"}]}`, "DENIED: ***", "docker login"},
		"in text":   {403, "text/plain", "%s " + long, "***", "docker login"},
		"a page":    {403, "text/html", "<html><title>Sign in</title>%s" + long, `the web page "Sign in"`, "docker login"},
		"too many":  {429, "text/plain", "%s " + long, "429 Too Many Requests", "again"},
		"gateway":   {502, "text/html", "<html><title>Bad gateway</title>%s" + long, `the web page "Bad gateway"`, "or a proxy before it, has a problem"},
		"login":     {200, "text/html", "<html><title>Sign in</title>%s" + long, `answers with the web page "Sign in"`, "wants a login"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", tc.kind)
			w.WriteHeader(tc.status)
			_, _ = fmt.Fprintf(w, tc.body, r.Header.Get("Authorization"))
		}))
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		auths[host] = map[string]string{"auth": credential}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shelf, err := bundle.NewShelf(host + "/fleet")
			if err != nil {
				t.Fatal(err)
			}
			var listed, fetched, resolved error
			var asks sync.WaitGroup // side by side, because each waits and asks again
			asks.Go(func() { _, listed = shelf.Names(t.Context()) })
			asks.Go(func() {
				_, fetched = bundle.FetchChart(t.Context(), nil, bundle.ChartRef{URL: "oci://" + host + "/charts/podinfo", Version: "1.0.0"})
			})
			asks.Go(func() { _, resolved = bundle.Resolve(t.Context(), host+"/podinfo:1", nil, "") })
			asks.Wait()
			for what, err := range map[string]error{"snapshots": listed, "chart": fetched, "digest": resolved} {
				hint := diag.Hint(err)
				if what == "snapshots" && tc.status == http.StatusForbidden {
					hint = strings.Replace(hint, "log in: ", "", 1)
				}
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hint, tc.hint) || len(err.Error()) > 1500 {
					t.Errorf("%s: %.2000v (%s)", what, err, hint)
				}
				for _, never := range []string{password, credential, "<title>"} {
					if strings.Contains(fmt.Sprint(err), never) {
						t.Errorf("%s: %q is in %.500v", what, never, err)
					}
				}
			}
		})
	}
	config, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.json"), config, 0o600); err != nil { // the parallel cases have not begun yet
		t.Fatal(err)
	}
}

// The error about a repository of charts says that the server has a problem or wants a login.
func TestRepositoryRefuses(t *testing.T) {
	for status, want := range map[int][2]string{
		503: {"503 Service Unavailable", "or a proxy before it, has a problem"},
		429: {"429 Too Many Requests", "again later"},
		404: {"404 Not Found", "check its address"},
		200: {`the web page "Sign in"`, "wants a login"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><title>Sign in</title>")
		}))
		_, err := bundle.FetchChart(t.Context(), nil, bundle.ChartRef{URL: server.URL, Name: "a", Version: "1.0.0"})
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(diag.Hint(err), want[1]) {
			t.Errorf("%d: %v (%s)", status, err, diag.Hint(err))
		}
	}
}
