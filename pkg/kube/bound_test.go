package kube_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

// A client gives up on a list whose pages have no end, whether they are large, small, or one page again and again.
func TestPagesAreBounded(t *testing.T) {
	large := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + strings.Repeat("a", 100<<10) + `"}}`
	for name, tc := range map[string]struct {
		items, next string // next is the continue token of a page, with N for its number
		most        int32
		want        string
	}{
		"large pages": {large, "page-N", 12, "more than 1 MiB together"},
		"small pages": {"", "page-N", 20, "more than 1 MiB together"},
		"one page":    {"", "page", 2, `its page after "page" is again`},
	} {
		t.Run(name, func(t *testing.T) {
			var pages atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/api":
					_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
				case "/apis":
					_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
				case "/api/v1":
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1",`+
						`"resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list"]}]}`)
				default:
					n := pages.Add(1)
					if n > 100 {
						panic(http.ErrAbortHandler)
					}
					_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`,
						strings.ReplaceAll(tc.next, "N", strconv.Itoa(int(n))), tc.items)
				}
			}))
			defer server.Close()
			client, err := kube.NewForConfig(&rest.Config{Host: server.URL}, kube.Options{MostBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.ListKind(t.Context(), corev1.SchemeGroupVersion.WithKind("Pod"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, not %q", err, tc.want)
			}
			if n := pages.Load(); n > tc.most {
				t.Errorf("asked for %d pages, not at most %d", n, tc.most)
			}
		})
	}
}
