package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// lateServer starts a server that leaves the first requests for a namespace unanswered until the client gives up. With halfway, it stops
// after the header. It returns a client of this server, and the number of requests for the namespace.
func lateServer(t *testing.T, late int32, halfway bool) (*Client, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
			return
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
			return
		case "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[` +
				`{"name":"namespaces","namespaced":false,"kind":"Namespace","verbs":["get"]}]}`))
			return
		}
		if asked.Add(1) > late {
			_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"one","uid":"1"}}`))
			return
		}
		if halfway {
			_, _ = w.Write([]byte(`{"kind":"Namespace",`))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	client, err := NewForConfig(&rest.Config{Host: server.URL}, Options{Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RESTMapper().RESTMapping(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), "v1"); err != nil {
		t.Fatal(err)
	}
	return client, asked
}

// A busy server that is late once is asked again. A server that never answers is given up, with an error that says so.
func TestLateAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		late    int32
		halfway bool
		fails   bool
		asked   int32
	}{
		{name: "the first answer does not come", late: 1, asked: 2},
		{name: "the first answer stops in the middle", late: 1, halfway: true, asked: 2},
		{name: "no answer comes", late: 9, fails: true, asked: 2},
		{name: "every answer stops in the middle", late: 9, halfway: true, fails: true, asked: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, asked := lateServer(t, tt.late, tt.halfway)
			err := Retry(t.Context(), func(ctx context.Context) error {
				return client.Get(ctx, Key{Name: "one"}, &corev1.Namespace{})
			})
			if (err != nil) != tt.fails || asked.Load() != tt.asked {
				t.Errorf("%d requests, error %v", asked.Load(), err)
			}
			if tt.fails && (!isLate(err) || !errors.Is(err, context.DeadlineExceeded) || !IsUnreachable(err)) {
				t.Errorf("not an error of time: %v", err)
			}
		})
	}
}

// A server that answers other requests in the meantime is only busy. It is asked more often, but not for ever.
func TestBusyServer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		late  int
		busy  bool
		fails bool
		asked int
	}{
		{name: "two answers do not come, nor any other", late: 2, fails: true, asked: 2},
		{name: "three answers do not come, but others", late: 3, busy: true, asked: 4},
		{name: "no answer comes, but others", late: 9, busy: true, fails: true, asked: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := &busyServer{late: tt.late}
			transport := bound(server, 10*time.Millisecond, mostBytes)
			if tt.busy {
				server.meanwhile = func() error { return answers(transport, "/version") }
			}
			err := Retry(t.Context(), func(context.Context) error { return answers(transport, "/late") })
			if (err != nil) != tt.fails || server.asked != tt.asked {
				t.Errorf("%d requests, error %v", server.asked, err)
			}
			if tt.fails && !isLate(err) {
				t.Errorf("not a late answer: %v", err)
			}
		})
	}
}

// busyServer leaves the first requests for /late unanswered.
type busyServer struct {
	late, asked int
	meanwhile   func() error // sends another request, if not nil
}

func (s *busyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/late" {
		if s.asked++; s.asked <= s.late {
			if s.meanwhile != nil {
				if err := s.meanwhile(); err != nil {
					return nil, err
				}
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// answers sends a request for path. It returns an error if no answer comes.
func answers(transport http.RoundTripper, path string) error {
	request, err := http.NewRequest(http.MethodGet, "http://server"+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// A wait until the API answers survives late answers.
func TestLateAnswersAreWaitedFor(t *testing.T) {
	client, asked := lateServer(t, 3, false)
	err := untilAnswered(t.Context(), "the API answers for one", nil, func(ctx context.Context) error {
		return client.Get(ctx, Key{Name: "one"}, &corev1.Namespace{})
	})
	if err != nil || asked.Load() != 4 {
		t.Errorf("%d requests, error %v", asked.Load(), err)
	}
}

// A server that tells its kinds byte by byte, without an end, is left and named, and others who ask for kinds do not wait for it again.
func TestSlowDiscovery(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(server.Close)
	client, err := NewForConfig(&rest.Config{Host: server.URL}, Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	want := "ask the API server " + server.URL + " which kinds it has: no complete answer within 2s"
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := client.Exists(t.Context(), corev1.SchemeGroupVersion.WithKind("Namespace"), Key{Name: "a"})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), "check `server:`") {
				t.Errorf("%v (%s)", err, diag.Hint(err))
			}
		})
	}
	all.Wait()
	if asked.Load() > 3 {
		t.Errorf("it was asked %d times", asked.Load())
	}
}

// A server that breaks every connection, or asks for a pause again and again, ends discovery within seconds. client-go would try ten times.
// The error still says that the server is lost.
func TestDiscoveryIsGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		lost   bool
	}{
		"lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"paused": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				tc.answer(w, r)
			}))
			t.Cleanup(server.Close)
			client, err := NewForConfig(&rest.Config{Host: server.URL}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.RESTMapper().RESTMapping(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), "v1")
			if err == nil || IsLost(err) != tc.lost || !strings.Contains(err.Error(), server.URL) || diag.Hint(err) == "" {
				t.Errorf("lost is %t: %v (%s)", IsLost(err), err, diag.Hint(err))
			}
			if n := asked.Load(); n > 2*mostLost {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// Discovery takes no context. A call that needs it ends with its own context nevertheless, also while another call waits for discovery.
func TestCallsEndWithTheirContext(t *testing.T) {
	const timeout = 20 * time.Second // of a single request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	c, err := NewForConfig(&rest.Config{Host: server.URL}, Options{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	wider, err := c.WithScheme()
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	patch := client.RawPatch(types.MergePatchType, []byte("{}"))
	applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "b"}}}
	for name, call := range map[string]func(ctx context.Context) error{
		"get":        func(ctx context.Context) error { return c.Get(ctx, Key{Namespace: "a", Name: "b"}, pod) },
		"get, wider": func(ctx context.Context) error { return wider.Get(ctx, Key{Namespace: "a", Name: "b"}, pod) },
		"list":       func(ctx context.Context) error { return c.List(ctx, &corev1.PodList{}) },
		"list metadata": func(ctx context.Context) error {
			_, err := c.ListMetadata(ctx, podKind, func(metav1.Object) bool { return true })
			return err
		},
		"watch":      func(ctx context.Context) error { _, err := c.WithWatch.Watch(ctx, &corev1.PodList{}); return err },
		"create":     func(ctx context.Context) error { return c.Create(ctx, pod.DeepCopy()) },
		"update":     func(ctx context.Context) error { return c.Update(ctx, pod.DeepCopy()) },
		"patch":      func(ctx context.Context) error { return c.Patch(ctx, pod.DeepCopy(), patch) },
		"delete":     func(ctx context.Context) error { return c.WithWatch.Delete(ctx, pod) },
		"delete all": func(ctx context.Context) error { return c.DeleteAllOf(ctx, pod, client.InNamespace("a")) },
		"apply": func(ctx context.Context) error {
			return c.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("test"))
		},
		"update status": func(ctx context.Context) error { return c.Status().Update(ctx, pod.DeepCopy()) },
		"patch status":  func(ctx context.Context) error { return c.Status().Patch(ctx, pod.DeepCopy(), patch) },
		"evict":         func(ctx context.Context) error { return c.SubResource("eviction").Create(ctx, pod, &corev1.Pod{}) },
		"mapping":       func(ctx context.Context) error { _, err := c.Mapping(ctx, podKind.GroupKind()); return err },
		"kind": func(ctx context.Context) error {
			_, err := c.KindFor(ctx, corev1.SchemeGroupVersion.WithResource("pods"))
			return err
		},
		"kinds": func(ctx context.Context) error { _, err := c.Kinds(ctx); return err },
		"labelled": func(ctx context.Context) error {
			_, err := c.ListLabelled(ctx, nil, nil, func(schema.GroupKind) bool { return false })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			err := call(ctx)
			if took := time.Since(began); took > timeout/2 {
				t.Errorf("it took %s", took)
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), server.URL) || diag.Hint(err) == "" {
				t.Errorf("got %v (%s)", err, diag.Hint(err))
			}
		})
	}
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")
