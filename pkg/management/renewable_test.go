package management

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A management cluster that this machine was connected to refuses the login: its credential has expired, or its certificate is another one.
// The hint says how this machine gets a new kubeconfig. For a cluster of the user's own kubeconfig there is nothing to connect.
func TestHintOfAConnectionThatIsRefused(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		ca        []byte
		connected bool
		says      string
	}{
		"an expired credential":                {own, true, "401 Unauthorized"},
		"a certificate of somebody else":       {nil, true, "certificate"},
		"a cluster of the user's own contexts": {own, false, "401 Unauthorized"},
	} {
		store := state.Store{Dir: t.TempDir()}
		cluster := store.Cluster("eu")
		record := state.Record{
			Name: "eu", HostType: "existing", Connected: test.connected, KubeconfigSource: cluster.Path("way"), Context: "eu",
		}
		if err := cluster.Save(record); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cluster.Path("way"), kubeconfigOf(server.URL, test.ca), 0o600); err != nil {
			t.Fatal(err)
		}
		target, err := Find(store, "eu", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = target.Client(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
		if way := strings.Contains(diag.Hint(err), "`fleetctl connect --management eu --kubeconfig FILE`"); way != test.connected {
			t.Errorf("%s: the hint is %q", name, diag.Hint(err))
		}
	}
}

// kubeconfigOf is a kubeconfig with a token for a server whose certificate is ca's, if there is one.
func kubeconfigOf(url string, ca []byte) []byte {
	trust := ""
	if ca != nil {
		trust = fmt.Sprintf(", certificate-authority-data: %s", base64.StdEncoding.EncodeToString(ca))
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: eu
clusters: [{name: eu, cluster: {server: %q%s}}]
contexts: [{name: eu, context: {cluster: eu, user: eu}}]
users: [{name: eu, user: {token: expired}}]
`, url, trust)
}
