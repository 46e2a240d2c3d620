package bundle

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The password of a registry goes to no other server: neither to the target of a redirect, nor to a token service without TLS.
func TestPasswordStays(t *testing.T) {
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(t.TempDir(), "none"))
	var mu sync.Mutex
	var told []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if given := r.Header.Get("Authorization"); given != "" {
			told = append(told, r.URL.Path+" "+given)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="give"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	stranger := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for name, reply := range map[string]http.HandlerFunc{
		"redirects the first request": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"redirects what is asked with the password": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, stranger+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"names a service for tokens": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, stranger))
			w.WriteHeader(http.StatusUnauthorized)
		},
		"redirects its service for tokens": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				http.Redirect(w, r, stranger+"/token", http.StatusTemporaryRedirect)
				return
			}
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, r.Host))
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := httptest.NewServer(reply)
			defer registry.Close()
			login(t, strings.TrimPrefix(registry.URL, "http://"))
			ref := strings.TrimPrefix(registry.URL, "http://") + "/a/b:v1"
			for _, s := range []Sources{{Images: []string{ref}}, {Charts: []string{"oci://" + ref}}} {
				err := fill(t.Context(), t, filepath.Join(t.TempDir(), "bundle"), s)
				if err == nil || strings.Contains(err.Error(), registryPassword) {
					t.Error(err)
				}
			}
		})
	}
	if len(told) > 0 {
		t.Errorf("another server was told %q", told)
	}
}

// login makes the user's credentials for a registry.
func login(t *testing.T, registry string) {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, registry, auth), 0o600))
	t.Setenv("DOCKER_CONFIG", dir)
}
