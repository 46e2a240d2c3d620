package apiserver_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// kubeconfig for a TLS server, with two contexts; the server's certificate stands in a file beside it.
func kubeconfig(t *testing.T, server *httptest.Server) string {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["mgmt"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthority: "ca.crt"}
	config.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://192.0.2.1"}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["mgmt"] = &clientcmdapi.Context{Cluster: "mgmt", AuthInfo: "me"}
	config.Contexts["other"] = &clientcmdapi.Context{Cluster: "other", AuthInfo: "me"}
	config.CurrentContext = "other"
	path := filepath.Join(dir, "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func client(t *testing.T, handler http.HandlerFunc) *apiserver.Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	data, err := apiserver.Extract(kubeconfig(t, server), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	c, err := apiserver.New(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWaitUntilReady(t *testing.T) {
	var calls atomic.Int32
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.NotFound(w, r)
		} else if calls.Add(1) < 3 {
			http.Error(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)
		}
	})
	var notReady *apiserver.NotReadyError
	if err := c.Ready(t.Context()); !errors.As(err, &notReady) || !reflect.DeepEqual(notReady.Failed, []string{"etcd"}) {
		t.Errorf("Ready: %v", err)
	}
	if err := c.Wait(t.Context()); err != nil || calls.Load() != 3 {
		t.Errorf("Wait: %v after %d calls", err, calls.Load())
	}
}

func TestWaitEndsWithTheLastReason(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) })
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	err := c.Wait(ctx)
	var notReady *apiserver.NotReadyError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &notReady) || !strings.Contains(err.Error(), c.Server()) {
		t.Errorf("got %v", err)
	}
}

func TestAdministrator(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			var review authorization.SelfSubjectAccessReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.Header.Get("Authorization") != "Bearer t" {
				http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
				return
			}
			a := review.Spec.ResourceAttributes
			review.Status.Allowed = allowed && a.Verb == "*" && a.Group == "*" && a.Resource == "*"
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(review)
		})
		if got, err := c.Administrator(t.Context()); err != nil || got != allowed {
			t.Errorf("got %v, %v; want %v", got, err, allowed)
		}
	}
}

func TestExtractNamesTheContextsThatThereAre(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	path := kubeconfig(t, server)
	var missing *apiserver.NoContextError
	if _, err := apiserver.Extract(path, "prod"); !errors.As(err, &missing) || !reflect.DeepEqual(missing.Known, []string{"mgmt", "other"}) {
		t.Errorf("got %v", err)
	}
	if _, err := apiserver.Extract(filepath.Join(t.TempDir(), "none"), "mgmt"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	data, err := apiserver.Extract(path, "mgmt")
	if err != nil || strings.Contains(string(data), "192.0.2.1") || strings.Contains(string(data), "ca.crt") {
		t.Errorf("it does not stand alone: %v\n%s", err, data)
	}
}
