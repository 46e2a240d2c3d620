package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// crdServer is an API server with one CRD.
type crdServer struct {
	mu sync.Mutex
	// accepted tells whether the CRD's names are accepted. established tells after how many lists the CRD is established, and touchable
	// whether it is once somebody has written it.
	accepted, touchable bool
	established         int
	lists, touches      int
}

func (s *crdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "true" {
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		<-r.Context().Done() // nothing changes
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.URL.Path == "/apis":
		const version = `{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}`
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apiextensions.k8s.io","versions":[`+version+
			`],"preferredVersion":`+version+`}]}`)
	case r.URL.Path == "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apiextensions.k8s.io/v1","resources":[`+
			`{"name":"customresourcedefinitions","singularName":"","namespaced":false,"kind":"CustomResourceDefinition",`+
			`"verbs":["list","patch","watch"]}]}`)
	case r.Method == http.MethodPatch:
		s.touches++
		fmt.Fprint(w, s.crd())
	case strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
		s.lists++
		fmt.Fprintf(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1",`+
			`"metadata":{"resourceVersion":"1"},"items":[%s]}`, s.crd())
	default:
		http.NotFound(w, r)
	}
}

func (s *crdServer) crd() string {
	conditions := ""
	if s.accepted {
		conditions = `{"type":"NamesAccepted","status":"True"}`
	}
	if s.touchable && s.touches > 0 || s.established > 0 && s.lists >= s.established {
		conditions = `{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}`
	}
	return `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"a.example.com"},` +
		`"status":{"conditions":[` + conditions + `]}}`
}

// A CRD is touched only if its names are accepted: else the API server is busy, and a touch would keep it busy.
func TestEstablishedIsTouchedOnlyIfAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		server  *crdServer
		touches int
	}{
		"busy":      {&crdServer{established: 4}, 0},
		"forgotten": {&crdServer{accepted: true, touchable: true}, 1},
	} {
		server := httptest.NewServer(c.server)
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		client, err := New([]byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \""+server.URL+"\"}}]\n"+
			"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.waitEstablished(t.Context(), "a.example.com", 300*time.Millisecond); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.server.mu.Lock()
		if c.server.touches != c.touches {
			t.Errorf("%s: touched %d times, not %d", name, c.server.touches, c.touches)
		}
		c.server.mu.Unlock()
	}
}
