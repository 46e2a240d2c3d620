//go:build clouds

package vault

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Programs of this test, which `make test-vault` builds and finds.
const (
	envVault  = "FLEETCTL_TEST_VAULT"
	envPython = "FLEETCTL_TEST_PYTHON" // has moto
)

// program starts a program that ends with the test, and returns the first line that it prints.
func program(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close() // it ends now
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatalf("%s said nothing: %v", args[0], lines.Err())
	}
	return lines.Text()
}

// named is a variable of the environment that has to be there.
func named(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set: run make test-vault", variable)
	}
	return value
}

// realVault is a Vault that runs, as its root sees it.
type realVault struct{ Address, Token string }

func startVault(t *testing.T) *realVault {
	t.Helper()
	v := &realVault{}
	if err := json.Unmarshal([]byte(program(t, named(t, envVault))), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// asks asks Vault's API as root.
func (v *realVault) asks(ctx context.Context, method, path string, body any) (map[string]any, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, v.Address+"/v1/"+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Vault-Token", v.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %d %s (%v)", method, path, response.StatusCode, answer, err)
	}
	out := map[string]any{}
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &out)
	}
	return out, err
}

// does is asks that has to succeed.
func (v *realVault) does(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	answer, err := v.asks(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// doesSoon is does for a write that Vault refuses while it prepares a new engine.
func (v *realVault) doesSoon(t *testing.T, path string, body any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := v.asks(ctx, http.MethodPost, path, body)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// fleetPolicy allows what a fleet's provider needs: to read secrets, and to renew what it was leased.
const fleetPolicy = `
path "secret/data/clouds/*" { capabilities = ["read"] }
path "old/clouds/*" { capabilities = ["read"] }
path "aws/creds/fleet" { capabilities = ["read"] }
`

// moto prints where a simulated AWS answers, and ends with its input.
const moto = `
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
print("http://%s:%s" % (host, port), flush=True)
sys.stdin.read()
server.stop()
`

// TestRealVault: the client does with a real Vault what its other tests hold it to: both versions of the key-value engine, keys of AWS
// that Vault makes and leases, and each login that needs no cluster.
func TestRealVault(t *testing.T) {
	v := startVault(t)
	aws := program(t, named(t, envPython), "-c", moto)
	v.does(t, http.MethodPost, "sys/mounts/secret", map[string]any{"type": "kv", "options": map[string]string{"version": "2"}})
	v.does(t, http.MethodPost, "sys/mounts/old", map[string]any{"type": "kv", "options": map[string]string{"version": "1"}})
	v.does(t, http.MethodPost, "old/clouds/other", map[string]any{"password": "one"})
	v.does(t, http.MethodPost, "sys/mounts/aws", map[string]any{"type": "aws"})
	v.does(t, http.MethodPost, "aws/config/root", map[string]any{
		"access_key": "AKIAROOT", "secret_key": "root", "region": "eu-central-1", "iam_endpoint": aws, "sts_endpoint": aws,
	})
	v.does(t, http.MethodPost, "aws/config/lease", map[string]any{"lease": "1h", "lease_max": "2h"})
	v.does(t, http.MethodPost, "aws/roles/fleet", map[string]any{
		"credential_type": "iam_user",
		"policy_document": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`,
	})
	v.does(t, http.MethodPost, "sys/policies/acl/fleet", map[string]any{"policy": fleetPolicy})
	v.doesSoon(t, "secret/data/clouds/other", map[string]any{"data": map[string]string{"password": "two"}})

	for _, login := range v.logins(t) {
		t.Run(string(login.Method), func(t *testing.T) {
			login.Address = v.Address
			c, err := New(login)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]string{"secret/clouds/other": "two", "secret/data/clouds/other": "two", "old/clouds/other": "one"} {
				s, err := c.Read(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := s.Field("password"); err != nil || got != want || s.Lease != "" || s.Until != nil {
					t.Errorf("%s: %q, %+v, %v", path, got, s, err)
				}
			}
			v.leased(t, c)
			if _, err := c.Read(t.Context(), "secret/others/key"); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("a secret of others: %v", err)
			}
		})
	}
	t.Run("a wrong token", func(t *testing.T) {
		c, err := New(Config{Address: v.Address, Method: MethodToken, Token: "hvs.wrong-7"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(t.Context(), "old/clouds/other"); err == nil || strings.Contains(err.Error(), "wrong-7") {
			t.Errorf("%v", err)
		}
	})
}

// leased reads keys of AWS, and renews them.
func (v *realVault) leased(t *testing.T, c *Client) {
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
	v.does(t, http.MethodPut, "sys/leases/revoke", map[string]any{"lease_id": s.Lease})
	if _, _, err := c.Renew(t.Context(), s.Lease, time.Hour); err == nil {
		t.Error("a lease that was revoked can be renewed")
	}
}

// logins are the ways to log in that need no cluster.
func (v *realVault) logins(t *testing.T) []Config {
	t.Helper()
	token := v.does(t, http.MethodPost, "auth/token/create", map[string]any{"policies": []string{"fleet"}, "ttl": "3h"})
	auth, _ := token["auth"].(map[string]any)
	v.does(t, http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	v.does(t, http.MethodPost, "auth/approle/role/fleet", map[string]any{"token_policies": "fleet", "token_ttl": "3h", "token_max_ttl": "3h"})
	role := data(v.does(t, http.MethodGet, "auth/approle/role/fleet/role-id", nil), "role_id")
	secret := data(v.does(t, http.MethodPost, "auth/approle/role/fleet/secret-id", map[string]any{}), "secret_id")
	return []Config{
		{Method: MethodToken, Token: fmt.Sprint(auth["client_token"])},
		{Method: MethodAppRole, RoleID: role, SecretID: secret},
		{Method: MethodJWT, Mount: "pipeline", Role: "fleet", JWT: v.pipeline(t)},
	}
}

// pipeline lets the tokens of a pipeline's identity provider log in, and returns one.
func (v *realVault) pipeline(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	v.does(t, http.MethodPost, "sys/auth/pipeline", map[string]any{"type": "jwt"})
	v.does(t, http.MethodPost, "auth/pipeline/config", map[string]any{
		"jwt_validation_pubkeys": []string{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))},
	})
	v.does(t, http.MethodPost, "auth/pipeline/role/fleet", map[string]any{
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
