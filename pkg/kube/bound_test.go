package kube_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
			server := onlyPods(t, func(w http.ResponseWriter) {
				n := pages.Add(1)
				if n > 100 {
					panic(http.ErrAbortHandler)
				}
				_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`,
					strings.ReplaceAll(tc.next, "N", strconv.Itoa(int(n))), tc.items)
			})
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

// onlyPods is an API server that has only pods, which list lists.
func onlyPods(t *testing.T, list func(http.ResponseWriter)) *httptest.Server {
	t.Helper()
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
			list(w)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// manyPods is a list of small pods in Kubernetes' protobuf format.
func manyPods(n int) []byte {
	raw := bytes.Repeat([]byte{2<<3 | 2, 0}, n)
	message := append([]byte("k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12"), binary.AppendUvarint(nil, uint64(len(raw)))...)
	return append(append(message, raw...), 0x1a, 0, 0x22, 0)
}

// A client gives up on a short list of so many small objects that they would fill the memory once they are decoded.
func TestObjectsOfAListAreBounded(t *testing.T) {
	const most = 4 << 20 // bytes
	inJSON := func(n int, item string) []byte {
		return []byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a\"]},{"}}` + strings.Repeat(","+item, n-1) + `]}`)
	}
	for name, tc := range map[string]struct {
		kind   string
		answer func(n int) []byte
		lists  func(context.Context, *kube.Client) (int, error)
	}{
		"JSON":            {"application/json", func(n int) []byte { return inJSON(n, "{}") }, pods},
		"null":            {"application/json", func(n int) []byte { return inJSON(n, "null") }, pods},
		"as unstructured": {"application/json", func(n int) []byte { return inJSON(n, "{}") }, anyPods},
		"protobuf":        {"application/vnd.kubernetes.protobuf", manyPods, pods},
		"protobuf with a group": {"application/vnd.kubernetes.protobuf", func(n int) []byte {
			if n < 1000 {
				return manyPods(n)
			}
			group := append([]byte{5<<3 | 3, 2<<3 | 2}, binary.AppendUvarint(nil, most)...)
			return slices.Concat([]byte("k8s\x00"), group, manyPods(n)[4:])
		}, pods},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := onlyPods(t, func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", tc.kind)
				_, _ = w.Write(tc.answer(int(n.Load())))
			})
			client, err := kube.NewForConfig(&rest.Config{Host: server.URL}, kube.Options{MostBytes: most})
			if err != nil {
				t.Fatal(err)
			}
			n.Store(500)
			if got, err := tc.lists(t.Context(), client); got != 500 || err != nil {
				t.Errorf("of 500 objects it got %d, %v", got, err)
			}
			n.Store(300_000)
			got, err := tc.lists(t.Context(), client)
			if !errors.Is(err, contact.ErrTooLarge) || !strings.Contains(err.Error(), "more than 8192 objects") {
				t.Errorf("of 300,000 objects it got %d, %v", got, err)
			}
		})
	}
}

func pods(ctx context.Context, c *kube.Client) (int, error) {
	var list corev1.PodList
	err := c.List(ctx, &list)
	return len(list.Items), err
}

func anyPods(ctx context.Context, c *kube.Client) (int, error) {
	list, err := c.ListKind(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
	return len(list), err
}
