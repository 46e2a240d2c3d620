package session

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// TestEnvironmentOfProviders: a bundle is a stranger's, and what its components name is handed to its controllers. It gets a provider's
// credentials, and no token that the repository can be written with, nor the key of the fleet's secrets.
func TestEnvironmentOfProviders(t *testing.T) {
	const version = "v1.14.2"
	root := t.TempDir()
	folder := filepath.Join(root, "infrastructure-aws", version)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	stolen := []string{"FLEETCTL_GIT_TOKEN", "SOPS_AGE_KEY", "VAULT_TOKEN", "GITHUB_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "CI_JOB_TOKEN"}
	content := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData:\n" +
		"  own: '${AWS_B64ENCODED_CREDENTIALS}'\n  none: '${GITLAB_TOKEN:=x}'\n"
	environment := map[string]string{"AWS_B64ENCODED_CREDENTIALS": "own"}
	for _, name := range stolen {
		content += "  " + strings.ToLower(name) + ": '${" + name + ":=}'\n"
		environment[name] = "s3cret"
	}
	metadata := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
		"releaseSeries: [{major: 1, minor: 14, contract: v1beta2}]\n"
	for name, text := range map[string]string{"infrastructure-components.yaml": content, "metadata.yaml": metadata} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := releases.NewSource(releases.SourceOptions{Repository: root})
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { value, ok := environment[name]; return value, ok }
	s := &Session{Deps: management.Deps{LookupEnv: lookup}}
	aws := []releases.Provider{{Name: "aws", Type: releases.Infrastructure, Version: version}}
	_, err = s.EnvironmentFor(t.Context(), source, aws, nil)
	for _, name := range stolen {
		if err == nil || !strings.Contains(err.Error(), "asks for the environment variable "+name) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diag.Hint(err) == "" {
		t.Errorf("no hint in %v", err)
	}
	// fleet.yaml may say that it gets one; and what is not set is nobody's.
	said := map[string]string{}
	for _, name := range stolen {
		said[name] = "given"
	}
	found, err := s.EnvironmentFor(t.Context(), source, aws, said)
	if err != nil || !maps.Equal(found, map[string]string{"AWS_B64ENCODED_CREDENTIALS": "own"}) {
		t.Errorf("%v, %v", found, err)
	}
}
