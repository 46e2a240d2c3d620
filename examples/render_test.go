//go:build integration

package examples_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const helm = "helm.sh/helm/v3/cmd/helm@v3.20.2"

// render checks that the chart of a flavour, and its schema, accept a cluster's values.
func render(t *testing.T, name, flavour string, values map[string]any) {
	t.Helper()
	content, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", helm, "template", "x",
		filepath.Join("..", "templates", "charts", flavour), "--values", "-")
	cmd.Stdin = bytes.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "kind: Cluster\n") {
		t.Errorf("%s: helm template: %v\n%s", name, err, out)
	}
}
