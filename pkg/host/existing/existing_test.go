package existing_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/existing"
	"github.com/fleetctl/fleetctl/pkg/host/hosttest"
)

func open(t *testing.T, handler http.HandlerFunc) (*existing.Host, *httptest.Server) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   server.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["prod"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "me"}
	config.CurrentContext = "prod"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	if _, err := existing.New("mgmt", existing.Options{Kubeconfig: path}); diag.Code(err) != diag.ExitUsage {
		t.Errorf("the current context was taken: %v", err)
	}
	if _, err := existing.New("mgmt", existing.Options{Kubeconfig: path, Context: "dev"}); !strings.Contains(diag.Hint(err), "prod") {
		t.Errorf("unknown context: %v (%s)", err, diag.Hint(err))
	}
	h, err := existing.New("mgmt", existing.Options{Kubeconfig: path, Context: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	return h, server
}

// api answers /readyz and permission reviews.
func api(allowed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(authorization.SelfSubjectAccessReview{
			Status: authorization.SubjectAccessReviewStatus{Allowed: allowed},
		})
	}
}

type archive []string

func (a archive) Names() []string { return a }
func (a archive) WriteArchive(context.Context, io.Writer, ...string) error {
	return errors.New("not read")
}

func TestContract(t *testing.T) {
	h, _ := open(t, api(true))
	hosttest.Run(t, h, hosttest.Options{Lasting: true})
}

func TestAdministratorsClusterIsTaken(t *testing.T) {
	h, server := open(t, api(true))
	if state, err := h.State(t.Context()); err != nil || state != host.StateRunning {
		t.Errorf("State: %s, %v", state, err)
	}
	answered := 0
	if err := h.Create(t.Context(), host.CreateOptions{Answers: func([]byte) { answered++ }}); err != nil || answered != 1 {
		t.Errorf("Create: %v; answered %d times", err, answered)
	}
	if err := h.LoadImages(t.Context(), nil, nil); err != nil {
		t.Errorf("no images to load: %v", err)
	}
	if err := h.LoadImages(t.Context(), archive{"a", "b"}, nil); err == nil || !strings.Contains(diag.Hint(err), "registry") {
		t.Errorf("images to load: %v", err)
	}
	if _, err := h.Gateway(t.Context()); err == nil || diag.Hint(err) == "" {
		t.Errorf("Gateway: %v", err)
	}
	if left, err := h.Delete(t.Context()); err != nil || len(left) != 1 || !strings.Contains(left[0], server.URL) {
		t.Errorf("Delete: %v, %v", left, err)
	}
}

func TestCreateNeedsAnAdministrator(t *testing.T) {
	h, server := open(t, api(false))
	if err := h.Create(t.Context(), host.CreateOptions{}); err == nil || !strings.Contains(diag.Hint(err), "cluster-admin") {
		t.Errorf("got %v (%s)", err, diag.Hint(err))
	}
	server.Close()
	if state, err := h.State(t.Context()); err == nil || !strings.Contains(err.Error(), server.URL) {
		t.Errorf("unreachable: %s, %v", state, err)
	}
}
