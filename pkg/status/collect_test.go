package status

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// An API server that does not answer is no cluster without providers, without Flux, and without workload clusters.
func TestWhatCannotBeAskedIsUnknown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil { // from now on connections are refused
		t.Fatal(err)
	}
	client, err := kube.New(
		[]byte(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://`+address+`"}}],
 contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}`), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := Collect(t.Context(), Sources{Cluster: Cluster{Name: "mgmt", Host: "kind", State: "running"}, Client: client})
	if r.Ready || !slices.Equal(r.Unknown, []string{"Flux", "providers", "workload clusters"}) {
		t.Errorf("ready %v, unknown %v", r.Ready, r.Unknown)
	}
	var out bytes.Buffer
	if err := Tree(&out, r, Style{}); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"providers: not known", "Flux: not known", "workload clusters: not known", "connection refused"} {
		if !strings.Contains(out.String(), said) {
			t.Errorf("it does not say %q:\n%s", said, out.String())
		}
	}
	for _, wrong := range []string{"not installed", "none are installed", "no workload clusters"} {
		if strings.Contains(out.String(), wrong) {
			t.Errorf("it says %q:\n%s", wrong, out.String())
		}
	}
}
