package resolve

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// An edit does not wait for a server that does not answer, and it asks such a server once, however often it is made.
func TestChartDigestOfASilentServer(t *testing.T) {
	var asked atomic.Int32
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer server.Close()
	defer close(over)
	charts, err := OpenCharts(t.Context(), progress.Discard, "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = charts.Close() }()
	if charts.patience > 10*time.Second {
		t.Errorf("an edit waits for %s", charts.patience)
	}
	charts.patience = 200 * time.Millisecond
	wanted := v1alpha1.LockedFeature{Name: "web", Chart: server.URL + "/web", Version: "1.2.0"}
	begun := time.Now()
	for range 3 {
		if digest, err := charts.Digest(t.Context(), wanted); err == nil {
			t.Errorf("it found %s", digest)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the server was asked %d times", got)
	}
}
