package forge

import (
	"net/url"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// Every forge that fleet.yaml may name has a client, and nothing else has.
func TestEveryForgeHasAClient(t *testing.T) {
	for _, forge := range v1alpha1.ForgeTypes() {
		remote := &url.URL{Scheme: "https", Host: "git.example.com", Path: "/acme/fleet.git"}
		if c, err := newClient(Options{Type: forge, Remote: remote, Token: "token"}, openPullRequests); err != nil || c == nil {
			t.Errorf("%s: %v", forge, err)
		}
	}
	if len(clients) != len(v1alpha1.ForgeTypes()) {
		t.Errorf("%d clients for %d forges", len(clients), len(v1alpha1.ForgeTypes()))
	}
}
