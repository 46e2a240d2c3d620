//go:build integration

package flux

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// The real source-controller tells which servers the cluster reaches, and nothing is left of the question.
func TestReach(t *testing.T) {
	client, kubeconfig := kubetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	installCRDs(ctx, t, client)
	startControllers(t, kubeconfig)
	answers := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(answers.Close)
	stranger := httptest.NewTLSServer(http.NotFoundHandler()) // of whose certificate nobody knows
	t.Cleanup(stranger.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "https://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	const nowhere = "https://vcenter.invalid"
	unreached, err := NewSystem(client).Reach(ctx, []string{answers.URL, stranger.URL, closed, nowhere})
	if err != nil {
		t.Fatal(err)
	}
	if len(unreached) != 2 || unreached[closed] == nil || unreached[nowhere] == nil {
		t.Errorf("not reached: %v, want %s and %s", unreached, closed, nowhere)
	}
	left, err := client.ListKind(ctx, helmRepositoryKind)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %d, %v", len(left), err)
	}
}
