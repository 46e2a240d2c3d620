//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// engineName is the container engine's program.
func engineName() string {
	if os.Getenv("KIND_EXPERIMENTAL_PROVIDER") == "podman" {
		return "podman"
	}
	return "docker"
}

// nodeImage is the image of nodes that become management clusters; `make e2e` names it.
func nodeImage(t *testing.T) string {
	t.Helper()
	image := os.Getenv(envNodeImage)
	if image == "" {
		t.Fatalf("%s is not set: run this with `make e2e`", envNodeImage)
	}
	return image
}

// engine runs the container engine's command line.
func engine(t *testing.T, args ...string) string {
	t.Helper()
	name := engineName()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// lines splits, without empty lines.
func lines(text string) []string {
	var out []string
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// containers are the names of all containers of the clusters whose name begins with prefix.
func containers(t *testing.T, prefix string) []string {
	t.Helper()
	var out []string
	for _, name := range lines(engine(t, "ps", "-a", "--format", "{{.Names}}")) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

func removeContainers(t *testing.T, prefix string) {
	for _, name := range containers(t, prefix) {
		engine(t, "rm", "-f", "-v", name)
	}
}
