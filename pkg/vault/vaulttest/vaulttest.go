//go:build clouds

// Package vaulttest starts a real Vault and a simulated AWS for tests.
package vaulttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Programs that `make test-vault` builds and finds.
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

// Vault is a Vault that runs, as its root sees it.
type Vault struct{ Address, Token string }

// Start starts a Vault without any engine.
func Start(t *testing.T) *Vault {
	t.Helper()
	v := &Vault{}
	if err := json.Unmarshal([]byte(program(t, named(t, envVault))), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Ask asks Vault's API as root.
func (v *Vault) Ask(ctx context.Context, method, path string, body any) (map[string]any, error) {
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
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer)
	}
	out := map[string]any{}
	if len(answer) > 0 {
		err = json.Unmarshal(answer, &out)
	}
	return out, err
}

// Do is Ask that has to succeed.
func (v *Vault) Do(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	answer, err := v.Ask(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// DoSoon is Do for a write that Vault refuses while it prepares a new engine.
func (v *Vault) DoSoon(t *testing.T, path string, body any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := v.Ask(ctx, http.MethodPost, path, body)
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

// AWS starts a simulated AWS, and an engine of Vault at path that makes keys in it for the role fleet. Each key has a lease.
func (v *Vault) AWS(t *testing.T, path, lease, leaseMax string) {
	t.Helper()
	aws := program(t, named(t, envPython), "-c", moto)
	v.Do(t, http.MethodPost, "sys/mounts/"+path, map[string]any{"type": "aws"})
	v.Do(t, http.MethodPost, path+"/config/root", map[string]any{
		"access_key": "AKIAROOT", "secret_key": "root", "region": "eu-central-1", "iam_endpoint": aws, "sts_endpoint": aws,
	})
	v.Do(t, http.MethodPost, path+"/config/lease", map[string]any{"lease": lease, "lease_max": leaseMax})
	v.Do(t, http.MethodPost, path+"/roles/fleet", map[string]any{
		"credential_type": "iam_user",
		"policy_document": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`,
	})
}

// Ended waits until Vault has revoked a lease.
func (v *Vault) Ended(t *testing.T, lease string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := v.Ask(ctx, http.MethodPut, "sys/leases/lookup", map[string]any{"lease_id": lease}); err != nil && ctx.Err() == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("Vault still has the lease %s", lease)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
