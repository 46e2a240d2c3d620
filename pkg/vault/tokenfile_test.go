package vault

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Somebody else renews a token: what Vault refuses with the old one is asked again with the new one, once, and leases end with the new one.
func TestTokenThatIsReplaced(t *testing.T) {
	var mu sync.Mutex
	valid, given := "one", "one"
	ttl := map[string]int{"one": 60, "two": 7200}
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		w.Header().Set("Content-Type", "application/json")
		switch token := r.Header.Get("X-Vault-Token"); {
		case token != valid:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"errors":["permission denied","invalid token"]}`))
		case strings.HasSuffix(r.URL.Path, "/lookup-self"):
			_, _ = fmt.Fprintf(w, lookupAnswer, ttl[token])
		case strings.Contains(r.URL.Path, "/mounts/"):
			_, _ = fmt.Fprintf(w, mountAnswer, "aws/", "aws", "{}")
		default:
			_, _ = w.Write([]byte(awsAnswer))
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{
		Address: server.URL, Method: MethodToken, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		ReadToken: func() (string, error) {
			if given == "" {
				return "", errors.New("is gone")
			}
			return given, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Read(t.Context(), "aws/creds/capa")
	if err != nil || first.Duration.Round(time.Second) != time.Minute {
		t.Fatalf("%+v, %v", first, err)
	}
	valid = "two"
	for _, same := range []string{"one", ""} { // nothing new is there yet
		given = same
		asked = 0
		if _, err := c.Read(t.Context(), "aws/creds/capa"); err == nil || !strings.Contains(err.Error(), "invalid token") || asked != 2 {
			t.Errorf("with %q: %v after %d requests", same, err, asked)
		}
	}
	given = "two"
	second, err := c.Read(t.Context(), "aws/creds/capa")
	if err != nil || second.Duration.Round(time.Second) != 2*time.Hour {
		t.Fatalf("%+v, %v", second, err)
	}
	if key, err := second.Field("access_key"); err != nil || key != "AKIATEST" {
		t.Errorf("%q, %v", key, err)
	}
}
