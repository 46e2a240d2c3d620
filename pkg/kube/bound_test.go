package kube_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// A client gives up on an endless answer of an API server, at once and without a retry.
func TestAnswersAreBounded(t *testing.T) {
	var lists atomic.Int32
	chunk := make([]byte, 64<<10)
	for i := range chunk {
		chunk[i] = ' '
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		case "/api/v1":
			_, _ = w.Write([]byte(
				`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list"]}]}`))
		default:
			lists.Add(1)
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[`))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL}, kube.Options{MostBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListKind(t.Context(), corev1.SchemeGroupVersion.WithKind("Pod")); !errors.Is(err, contact.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if n := lists.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
