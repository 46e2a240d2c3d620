package management

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

const someKeys = `{"keys":[{"use":"sig","kty":"RSA","kid":"k","alg":"RS256","n":"AQ","e":"AQAB","d":"canary","p":"canary"}]}`

func TestIssuerFiles(t *testing.T) {
	got, err := issuerFiles(
		[]byte(
			`{"issuer":"https://oidc.example.com/mgmt","jwks_uri":"https://oidc.example.com/mgmt/openid/v1/jwks",`+
				`"response_types_supported":["id_token"]}`,
		),
		[]byte(someKeys),
		"mgmt",
	)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got.result.Files, " ") != ".well-known/openid-configuration openid/v1/jwks" || got.result.Keys != 1 ||
		got.result.Issuer != "https://oidc.example.com/mgmt" {
		t.Errorf("%+v", got.result)
	}
	keys := string(got.content["openid/v1/jwks"])
	if strings.Contains(keys, "canary") || !strings.Contains(keys, `"n":"AQ"`) {
		t.Errorf("published %s", keys)
	}
	for name, discovery := range map[string]string{
		"the cluster's own":    `{"issuer":"https://kubernetes.default.svc.cluster.local","jwks_uri":"https://127.0.0.1:1/openid/v1/jwks"}`,
		"without TLS":          `{"issuer":"http://oidc.example.com","jwks_uri":"http://oidc.example.com/openid/v1/jwks"}`,
		"keys elsewhere":       `{"issuer":"https://oidc.example.com/mgmt","jwks_uri":"https://10.0.0.1/openid/v1/jwks"}`,
		"keys outside of it":   `{"issuer":"https://oidc.example.com/mgmt","jwks_uri":"https://oidc.example.com/mgmt/../../keys"}`,
		"keys in another host": `{"issuer":"https://oidc.example.com","jwks_uri":"https://oidc.example.com.evil.example/keys"}`,
	} {
		_, err := issuerFiles([]byte(discovery), []byte(someKeys), "mgmt")
		if err == nil || diag.Hint(err) == "" || strings.Contains(diag.Hint(err), "host start") { // which does not read fleet.yaml
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := issuerFiles([]byte(`{"issuer":"https://a.example","jwks_uri":"https://a.example/k"}`),
		[]byte(`{"keys":[]}`), "mgmt"); err == nil {
		t.Error("published no keys")
	}
}
