package vault

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A Vault that nobody reaches says nothing of the token.
func TestUnreachableVaultAndToken(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	client, err := New(Config{Address: server.URL, Method: "token", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Read(t.Context(), "aws/creds/fleet")
	if err == nil || strings.Contains(diag.Hint(err), "vault login") {
		t.Errorf("%v\n%s", err, diag.Hint(err))
	}
}
