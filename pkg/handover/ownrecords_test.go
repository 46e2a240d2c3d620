package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// kubeconfigTo is a kubeconfig for an API server without TLS.
func kubeconfigTo(server string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"a","cluster":{"server":%q}}],`+
		`"users":[{"name":"a","user":{"token":"t"}}],"contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}]}`, server)
}

// silentServer accepts connections, and never answers. It returns its address.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var mu sync.Mutex
	var open []net.Conn // so that none is closed when it is collected
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		}
	}()
	return "http://" + listener.Addr().String()
}

// Hundreds of clusters that this machine does not reach do not hold up who looks. Each of them is counted.
func TestAskingSilentClustersEndsInTime(t *testing.T) {
	const clusters = 300
	silent := kubeconfigTo(silentServer(t))
	var rest []kube.Key
	for i := range clusters {
		rest = append(rest, kube.Key{Namespace: "n", Name: fmt.Sprint("c", i)})
	}
	var mu sync.Mutex
	at, most := 0, 0
	began := time.Now()
	got := askForRecords(t.Context(), short, func(context.Context, kube.Key) ([]byte, error) {
		mu.Lock()
		at++
		most = max(most, at)
		mu.Unlock()
		defer func() { mu.Lock(); at--; mu.Unlock() }()
		return silent, nil
	}, nil, rest)
	took := time.Since(began)
	t.Logf("%d clusters that do not answer: %v, %+v", clusters, took, got)
	if took > short.all+20*time.Second { // with what a busy machine needs
		t.Errorf("it took %v", took)
	}
	if got.Unasked == 0 || got.Answered != 0 || got.Silent+got.Unasked != clusters || most > lookAtOnce {
		t.Errorf("got %+v, at most %d at once", got, most)
	}
}

// Whoever has no time left asks nobody, and says so. A cluster whose kubeconfig cannot be had was not asked.
func TestUnaskedClustersAreCounted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	keys := []kube.Key{{Namespace: "a", Name: "a"}, {Namespace: "b", Name: "b"}}
	if got := askForRecords(over, short, nil, keys[:1], keys[1:]); got.Unasked != 2 || got.Silent+got.Answered != 0 {
		t.Errorf("without time: %+v", got)
	}
	none := func(context.Context, kube.Key) ([]byte, error) { return nil, errors.New("forbidden") }
	if got := askForRecords(t.Context(), short, none, keys, nil); got.Unasked != 2 || got.Silent+got.Answered != 0 {
		t.Errorf("without kubeconfigs: %+v", got)
	}
}

// Who may not read the kubeconfigs is not refused once for each cluster. What runs side by side already is not held back.
func TestAskingStopsWhereItIsForbidden(t *testing.T) {
	var keys []kube.Key
	for i := range 10 * lookAtOnce {
		keys = append(keys, kube.Key{Namespace: "n", Name: fmt.Sprint(i)})
	}
	var read atomic.Int32
	got := askForRecords(t.Context(), lookBounds{time.Minute, time.Minute}, func(_ context.Context, key kube.Key) ([]byte, error) {
		read.Add(1)
		return nil, fmt.Errorf("read it: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil))
	}, nil, keys)
	if n := int(read.Load()); n > lookAtOnce || !got.Forbidden || got.Unasked != len(keys) {
		t.Errorf("%d were read: %+v", n, got)
	}
}

// The clusters of first are asked before all others.
func TestTheFirstAreAskedFirst(t *testing.T) {
	var mu sync.Mutex
	var begun []kube.Key
	var rest []kube.Key
	for i := range 10 * lookAtOnce {
		rest = append(rest, kube.Key{Namespace: "rest", Name: fmt.Sprint(i)})
	}
	full := make(chan struct{}) // closed once as many are asked as may be at once
	first := kube.Key{Namespace: "first", Name: "a"}
	askForRecords(t.Context(), short, func(_ context.Context, key kube.Key) ([]byte, error) {
		mu.Lock()
		if begun = append(begun, key); len(begun) == lookAtOnce {
			close(full)
		}
		mu.Unlock()
		<-full
		return nil, errors.New("no")
	}, []kube.Key{first}, rest)
	if at := slices.Index(begun, first); at < 0 || at >= lookAtOnce {
		t.Errorf("it was number %d", at)
	}
}

// What a workload cluster answers is taken for what it is: a record, none, damage, or no answer.
func TestAnswersOfWorkloadClusters(t *testing.T) {
	code, answer := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-system/configmaps/fleetctl-owner" {
			t.Errorf("it asks for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	record := func(owner string) string {
		return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"kube-system","name":"fleetctl-owner"},`+
			`"data":{"owner":%q}}`, owner)
	}
	owner := capi.Owner{Fleet: "f", ManagementCluster: "second\x1b[2J", UID: "u2", Epoch: 2}
	key := kube.Key{Namespace: "shop", Name: "shop"}
	failed := func(reason string, code int) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,`+
			`"details":{"kind":"configmaps","name":"fleetctl-owner"}}`, reason, code)
	}
	for name, c := range map[string]struct {
		code   int
		answer string
		want   *OwnRecord
		silent int
	}{
		"no record":    {404, failed("NotFound", 404), nil, 0},
		"a record":     {200, record(owner.String()), &OwnRecord{Owner: owner}, 0},
		"no epoch":     {200, record(`{"managementCluster":"second"}`), &OwnRecord{Damaged: true}, 0},
		"garbage":      {200, record("garbage"), &OwnRecord{Damaged: true}, 0},
		"too large":    {200, record(strings.Repeat("x", mostOfLook)), nil, 1},
		"refused":      {403, failed("Forbidden", 403), nil, 1},
		"another one":  {200, strings.ReplaceAll(record(owner.String()), "fleetctl-owner", "other"), nil, 1},
		"a proxy":      {404, "<html>", nil, 1},
		"another kind": {200, "{}", nil, 1},
		"nonsense":     {200, "<html>", nil, 1},
	} {
		code, answer = c.code, c.answer
		got := askForRecords(t.Context(), lookBounds{time.Minute, time.Minute},
			func(context.Context, kube.Key) ([]byte, error) { return kubeconfigTo(server.URL), nil }, nil, []kube.Key{key})
		is, has := got.Records[key.String()]
		if got.Silent != c.silent || got.Answered != 1-c.silent || has != (c.want != nil) || has && is != *c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestContradicts(t *testing.T) {
	mine := capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 2}
	theirs := func(change func(*capi.Owner)) OwnRecord {
		o := OwnRecord{Owner: capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}}
		change(&o.Owner)
		return o
	}
	for name, c := range map[string]struct {
		record OwnRecord
		here   capi.Owner
		fleet  string
		want   bool
	}{
		"two restores of one snapshot": {theirs(func(*capi.Owner) {}), mine, "f", true},
		"taken over since":             {theirs(func(o *capi.Owner) { o.Epoch = 3 }), mine, "f", true},
		"no hand-over here":            {theirs(func(*capi.Owner) {}), capi.Owner{}, "f", true},
		"of who handed it over here": {
			theirs(func(*capi.Owner) {}), capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 2, From: "u2"}, "f", false,
		},
		"of who has taken it back from here": {
			theirs(func(o *capi.Owner) { o.Epoch = 3 }),
			capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 2, From: "u2"},
			"f", true,
		},
		"an older one":      {theirs(func(o *capi.Owner) { o.Epoch = 1 }), mine, "f", false},
		"mine":              {OwnRecord{Owner: mine}, mine, "f", false},
		"detached":          {theirs(func(o *capi.Owner) { o.ManagementCluster = "" }), mine, "f", false},
		"another fleet":     {theirs(func(o *capi.Owner) { o.Fleet = "g" }), mine, "f", false},
		"no fleet is known": {theirs(func(o *capi.Owner) { o.Fleet = "" }), mine, "", false},
		"damaged":           {OwnRecord{Damaged: true}, mine, "f", false},
	} {
		if got := c.record.Contradicts(c.here, "u1", c.fleet); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
