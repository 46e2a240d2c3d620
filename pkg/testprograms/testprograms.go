// Package testprograms gives integration tests the real programs that they run: etcd, kube-apiserver, kube-controller-manager and Flux's
// controllers, built from their modules.
package testprograms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variable names a folder that has the programs already. `make test-integration` sets it.
const Variable = "KUBEBUILDER_ASSETS"

// versions is a variable that says which builds of the programs are in that folder. Nothing but Go's test cache needs to know: it runs a
// test again if a variable that the test read has changed, but never looks at a program outside of the module.
const versions = "FLEETCTL_TEST_PROGRAMS"

// Parts of scripts/offline that have programs for tests.
const (
	controlPlane = "control-plane"
	flux         = "flux"
)

// ControlPlane returns the folder with etcd, kube-apiserver, kube-controller-manager and kubectl. Without Variable scripts/offline builds
// them: a second where it has done so before, else minutes. Where that fails, or takes longer than the tests may, t fails and says what to
// do: a test that is skipped proves nothing.
func ControlPlane(t *testing.T) string {
	t.Helper()
	return folder(t, controlPlane)
}

// Flux is ControlPlane for Flux's controllers.
func Flux(t *testing.T) string {
	t.Helper()
	return folder(t, flux)
}

// built is what was built for other tests of this process, by part. Other processes wait for scripts/offline's lock.
var built struct {
	sync.Mutex
	folders map[string]string
}

func folder(t *testing.T, part string) string {
	t.Helper()
	if dir := os.Getenv(Variable); dir != "" {
		_ = os.Getenv(versions)
		return dir
	}
	built.Lock()
	defer built.Unlock()
	if dir := built.folders[part]; dir != "" {
		return dir
	}
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		const toSaySo = 10 * time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-toSaySo))
		defer cancel()
	}
	dir, err := build(ctx, part)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.Fatalf("the programs that these tests run are not built within go test's -timeout: what is built is kept, so run it again, "+
			"or `make test-integration`, which waits for them, or set %s to a folder that has them", Variable)
	case err != nil:
		t.Fatalf("build the programs that these tests run: %v (`make test-integration` shows more; or set %s to a folder that has them)", err,
			Variable)
	}
	if built.folders == nil {
		built.folders = map[string]string{}
	}
	built.folders[part] = dir
	return dir
}

func build(ctx context.Context, part string) (dir string, err error) {
	module, err := output(exec.CommandContext(ctx, "go", "env", "GOMOD")) // of the folder that tests run in: their package's
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	recipe := filepath.Join(filepath.Dir(module), "scripts", "offline")
	if _, err := os.ReadDir(recipe); err != nil { // so that Go's test cache knows of a changed recipe, too
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "-C", recipe,
		"run", "-trimpath", "-buildvcs=false", ".", "build", "-only", part, "-cache", cache)
	// Not what the tests are built with; and without C, as make does it, so that both use the same packages.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	endTogether(cmd)
	cmd.WaitDelay = 5 * time.Second
	if _, err := output(cmd); err != nil {
		return "", err
	}
	return filepath.Join(cache, "programs"), nil
}

// cacheFolder is the Makefile's OFFLINE.
func cacheFolder() (string, error) {
	if dir := os.Getenv("FLEETCTL_CACHE_DIR"); dir != "" {
		return filepath.Join(dir, "offline"), nil
	}
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "fleetctl", "offline"), nil
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
