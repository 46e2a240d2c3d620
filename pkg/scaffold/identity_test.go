package scaffold

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Values that AWS would refuse when the role is assumed are refused, or made to fit, when the identity is written.
func TestIdentityThatAWSTakes(t *testing.T) {
	o := IdentityOptions{
		Name: strings.Repeat("a", 63), Provider: IdentityAWS, Management: "mgmt", Environments: []string{"dev"},
		RoleARN: "arn:aws:iam::111122223333:role/fleet",
	}
	file, err := IdentityFile(o)
	if err != nil || !strings.Contains(string(file.Content), "sessionName: fleet-"+strings.Repeat("a", 58)+"\n") {
		t.Errorf("%v\n%s", err, file.Content)
	}
	for id, good := range map[string]bool{"a:b/c@d": true, "a b": false, "a": false, "ä-ö": false, strings.Repeat("x", 1225): false} {
		o.ExternalID = id
		if _, err := IdentityFile(o); (err == nil) != good {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}

// With an issuer, the role of the controllers trusts a provider of OpenID Connect: a user of AWS trusts nobody, and AWS takes no address
// with a port as such a provider.
func TestIssuerThatAWSTakes(t *testing.T) {
	for _, tc := range []struct{ trusted, issuer, want string }{
		{"", "https://oidc.example.com/mgmt", ""},
		{"arn:aws:iam::111122223333:role/capa", "https://oidc.example.com/mgmt", ""},
		{"arn:aws:iam::111122223333:user/capa", "", ""},
		{"arn:aws:iam::111122223333:user/capa", "https://oidc.example.com/mgmt", "is a user, and only a role trusts an issuer"},
		{"", "https://oidc.example.com:8443/mgmt", "has a port"},
	} {
		o := IdentityOptions{
			Name: "prod", Provider: IdentityAWS, Management: "mgmt", Environments: []string{"dev"},
			RoleARN: "arn:aws:iam::111122223333:role/fleet", TrustedARN: tc.trusted, Issuer: tc.issuer,
		}
		err := o.Check()
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || diag.Hint(err) == "") {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// What stands in no URL, or names another folder than it says, is no issuer: it would be in a trust policy that the cloud refuses.
func TestIssuerIsAURL(t *testing.T) {
	for issuer, good := range map[string]bool{
		"https://oidc.example.com/mgmt":               true,
		"https://eu.oic.prod-aks.azure.com/0a-1b/2c/": true, // AKS ends its issuers with a slash
		"https://oidc.example.com/~a/b_c.d":           true,
		"https://oidc.example.com/a b":                false,
		`https://oidc.example.com/a"b`:                false,
		"https://oidc.example.com/a,b":                false,
		"https://oidc.example.com/a/../b":             false,
		"https://oidc.example.com/ä":                  false,
		"https://oidc.example.com/a?":                 false,
		"https://oidc.example.com/a#":                 false,
	} {
		o := IdentityOptions{
			Name: "prod", Provider: IdentityAWS, Management: "mgmt", Environments: []string{"dev"},
			RoleARN: "arn:aws:iam::111122223333:role/fleet", Issuer: issuer,
		}
		if err := o.Check(); (err == nil) != good {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}
