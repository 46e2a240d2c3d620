//go:build clouds

package vault

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/vault/vaulttest"
)

// fleetPolicy allows what a fleet's provider needs: to read secrets, and to renew what it was leased.
const fleetPolicy = `
path "secret/data/clouds/*" { capabilities = ["read"] }
path "old/clouds/*" { capabilities = ["read"] }
path "aws/creds/fleet" { capabilities = ["read"] }
`

// TestRealVault: the client does with a real Vault what its other tests hold it to: both versions of the key-value engine, keys of AWS
// that Vault makes and leases, and each login that needs no cluster.
func TestRealVault(t *testing.T) {
	v := vaulttest.Start(t)
	v.AWS(t, "aws", "1h", "2h")
	v.Do(t, http.MethodPost, "sys/mounts/secret", map[string]any{"type": "kv", "options": map[string]string{"version": "2"}})
	v.Do(t, http.MethodPost, "sys/mounts/old", map[string]any{"type": "kv", "options": map[string]string{"version": "1"}})
	v.Do(t, http.MethodPost, "old/clouds/other", map[string]any{"password": "one"})
	v.Do(t, http.MethodPost, "sys/policies/acl/fleet", map[string]any{"policy": fleetPolicy})
	v.DoSoon(t, "secret/data/clouds/other", map[string]any{"data": map[string]string{"password": "two"}})
	v.Do(t, http.MethodPost, "secret/data/clouds/gone", map[string]any{"data": map[string]string{"password": "three"}})
	v.Do(t, http.MethodDelete, "secret/data/clouds/gone", nil)

	logins := logins(t, v)
	for _, login := range logins {
		t.Run(string(login.Method), func(t *testing.T) {
			c := client(t, v, login)
			for path, want := range map[string]string{"secret/clouds/other": "two", "secret/data/clouds/other": "two", "old/clouds/other": "one"} {
				s, err := c.Read(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := s.Field("password"); err != nil || got != want || s.Lease != "" || s.Until != nil {
					t.Errorf("%s: %q, %+v, %v", path, got, s, err)
				}
			}
			leased(t, v, c)
		})
	}
	for _, login := range logins {
		login.Address = v.Address
		refused(t, login)
	}
	// last, because a sealed Vault stays sealed
	sealed, loggedIn := client(t, v, logins[1]), client(t, v, logins[0])
	if _, err := loggedIn.Read(t.Context(), "old/clouds/other"); err != nil {
		t.Fatal(err)
	}
	v.Do(t, http.MethodPut, "sys/seal", nil)
	for _, c := range []*Client{sealed, loggedIn} {
		_, err := c.Read(t.Context(), "old/clouds/other")
		tells(t, err, "sealed", "vault status")
	}
}

func client(t *testing.T, v *vaulttest.Vault, config Config) *Client {
	t.Helper()
	config.Address = v.Address
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tells asserts an error's text and its hint, and that no secret is in them.
func tells(t *testing.T, err error, want, hint string, secrets ...string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), hint) {
		t.Errorf("%v, hint %q; want %s, hint %s", err, diag.Hint(err), want, hint)
		return
	}
	for _, secret := range append(secrets, "hvs.") {
		if strings.Contains(err.Error()+diag.Hint(err), secret) {
			t.Errorf("the error has a secret in it: %v", err)
		}
	}
}

// refused reads what is not there, and logs in with what is wrong.
func refused(t *testing.T, login Config) {
	t.Helper()
	for name, c := range map[string]struct {
		change         func(*Config)
		at, want, hint string
	}{
		"of others":       {nil, "secret/others/key", "permission denied", "the token's policy"},
		"not mounted":     {nil, "nonsuch/key", "permission denied", "the token's policy"},
		"not there":       {nil, "old/clouds/none", "404", "vault secrets list"},
		"not there, kv2":  {nil, "secret/clouds/none", "404", "vault secrets list"},
		"deleted":         {nil, "secret/clouds/gone", "is deleted", "vault kv put"},
		"no such role":    {nil, "aws/creds/nonsuch", "permission denied", "the token's policy"},
		"no such mount":   {func(c *Config) { c.Mount = "nonsuch" }, "old/clouds/other", "log in to Vault", "`vault:`"},
		"wrong token":     {func(c *Config) { c.Token = "hvs.wrong-7" }, "old/clouds/other", "log in to Vault with the token", "vault login"},
		"wrong secret id": {func(c *Config) { c.SecretID = "wrong-7" }, "old/clouds/other", "log in to Vault by approle", "`vault:`"},
		"wrong role id":   {func(c *Config) { c.RoleID = "wrong-7" }, "old/clouds/other", "log in to Vault by approle", "`vault:`"},
		"wrong role":      {func(c *Config) { c.Role = "wrong-role" }, "old/clouds/other", "log in to Vault by jwt", "`vault:`"},
		"wrong jwt":       {func(c *Config) { c.JWT += "wrong-7" }, "old/clouds/other", "log in to Vault by jwt", "`vault:`"},
	} {
		takes := map[string]Method{
			"wrong token": MethodToken, "wrong secret id": MethodAppRole, "wrong role id": MethodAppRole,
			"wrong role": MethodJWT, "wrong jwt": MethodJWT,
		}
		if method, one := takes[name]; one && method != login.Method || name == "no such mount" && login.Method == MethodToken {
			continue
		}
		t.Run(string(login.Method)+" "+name, func(t *testing.T) {
			config := login
			if c.change != nil {
				c.change(&config)
			}
			client, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Read(t.Context(), c.at)
			secrets := []string{"wrong-7"}
			for _, secret := range []string{config.Token, config.SecretID, config.JWT} {
				if secret != "" {
					secrets = append(secrets, secret)
				}
			}
			tells(t, err, c.want, c.hint, secrets...)
		})
	}
}

// leased reads keys of AWS, and renews them.
func leased(t *testing.T, v *vaulttest.Vault, c *Client) {
	t.Helper()
	s, err := c.Read(t.Context(), "aws/creds/fleet")
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.Field("access_key")
	if err != nil || !strings.HasPrefix(key, "AKIA") {
		t.Errorf("the key is %q, %v", key, err)
	}
	if s.Lease == "" || s.Until == nil || s.Duration <= 0 || s.Duration > time.Hour {
		t.Fatalf("%+v", s)
	}
	until, renewable, err := c.Renew(t.Context(), s.Lease, 90*time.Minute)
	if err != nil || !renewable || !until.After(time.Now().Add(20*time.Minute)) {
		t.Errorf("renewed until %s, renewable %t, %v", until, renewable, err)
	}
	if until, _, err = c.Renew(t.Context(), s.Lease, 10*time.Hour); err != nil || time.Until(until) > 2*time.Hour {
		t.Errorf("a lease of two hours at most is renewed until %s, %v", until, err)
	}
	v.Do(t, http.MethodPut, "sys/leases/revoke", map[string]any{"lease_id": s.Lease})
	if _, _, err := c.Renew(t.Context(), s.Lease, time.Hour); err == nil {
		t.Error("a lease that was revoked can be renewed")
	}
}

// logins are the ways to log in that need no cluster.
func logins(t *testing.T, v *vaulttest.Vault) []Config {
	t.Helper()
	token := v.Do(t, http.MethodPost, "auth/token/create", map[string]any{"policies": []string{"fleet"}, "ttl": "3h"})
	auth, _ := token["auth"].(map[string]any)
	v.Do(t, http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	v.Do(t, http.MethodPost, "auth/approle/role/fleet", map[string]any{"token_policies": "fleet", "token_ttl": "3h", "token_max_ttl": "3h"})
	role := data(v.Do(t, http.MethodGet, "auth/approle/role/fleet/role-id", nil), "role_id")
	secret := data(v.Do(t, http.MethodPost, "auth/approle/role/fleet/secret-id", map[string]any{}), "secret_id")
	return []Config{
		{Method: MethodToken, Token: fmt.Sprint(auth["client_token"])},
		{Method: MethodAppRole, RoleID: role, SecretID: secret},
		{Method: MethodJWT, Mount: "pipeline", Role: "fleet", JWT: pipeline(t, v)},
	}
}

// pipeline lets the tokens of a pipeline's identity provider log in, and returns one.
func pipeline(t *testing.T, v *vaulttest.Vault) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	v.Do(t, http.MethodPost, "sys/auth/pipeline", map[string]any{"type": "jwt"})
	v.Do(t, http.MethodPost, "auth/pipeline/config", map[string]any{
		"jwt_validation_pubkeys": []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))},
	})
	v.Do(t, http.MethodPost, "auth/pipeline/role/fleet", map[string]any{
		"role_type": "jwt", "user_claim": "sub", "bound_audiences": "vault", "bound_subject": "project:acme/fleet",
		"token_policies": "fleet", "token_ttl": "3h",
	})
	claims := map[string]any{
		"sub": "project:acme/fleet", "aud": "vault", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	signed := encoded(t, map[string]string{"alg": "RS256", "typ": "JWT"}) + "." + encoded(t, claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// encoded is a part of a JSON Web Token.
func encoded(t *testing.T, part any) string {
	t.Helper()
	content, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(content)
}

// data is a field of the data of an answer.
func data(answer map[string]any, field string) string {
	inner, _ := answer["data"].(map[string]any)
	return fmt.Sprint(inner[field])
}
