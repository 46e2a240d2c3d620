// Package testprograms gives integration tests the real programs that they run: etcd, kube-apiserver, kube-controller-manager and Flux's
// controllers, built from their modules.
package testprograms

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Variable names a folder that has the programs already. `make test-integration` sets it.
const Variable = "KUBEBUILDER_ASSETS"

// Folder returns where the programs are. Without Variable scripts/offline builds them: seconds where it has done so before, else half an hour,
// which wants a longer -timeout than go test has by itself. Where they cannot be built t fails: a test that is skipped proves nothing.
func Folder(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(Variable); dir != "" {
		return dir
	}
	dir, err := built()
	if err != nil {
		t.Fatalf("%v (run `make test-integration`, or set %s to a folder that has the programs)", err, Variable)
	}
	return dir
}

// built builds once for all tests of a process; others wait for scripts/offline's lock.
var built = sync.OnceValues(func() (string, error) {
	module, err := output(exec.Command("go", "env", "GOMOD")) // of the folder that tests run in: their package's
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "-C", filepath.Join(filepath.Dir(module), "scripts", "offline"),
		"run", "-trimpath", "-buildvcs=false", ".", "build", "-only", "programs", "-cache", cache)
	build.Env = append(os.Environ(), "GOFLAGS=") // not what the tests are built with
	if _, err := output(build); err != nil {
		return "", err
	}
	return filepath.Join(cache, "programs"), nil
})

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
