//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBlackHole has a network that takes every packet and answers none, as many firewalls make it. Whatever needs another machine says
// within ten seconds that it cannot be reached, and what else to do.
func TestBlackHole(t *testing.T) {
	const (
		limit = 10 * time.Second
		busy  = 15 * time.Second // what a machine that runs other tests as well may take longer
	)
	script, err := filepath.Abs("../../../scripts/black-hole.sh")
	if err != nil {
		t.Fatal(err)
	}
	f := newFleetOn(t, onEmbedded, "nowhere")
	f.git("init", "-q", "--initial-branch", "main")
	f.commit("a fleet that nothing of is at hand", map[string]string{"fleet.yaml": `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: nowhere
spec:
  git:
    url: https://git.example.com/nowhere/fleet.git
  managementClusters:
  - name: nowhere
    host: {type: embedded}
    cloud: aws
    providers:
    - {name: aws, version: v2.13.0}
    - {name: docker, version: v1.14.0}
    - {name: own, version: v1.0.0, url: "https://releases.example.com/own/v1.0.0/infrastructure-components.yaml"}
`})
	f.git("remote", "add", "origin", "https://git.example.com/nowhere/fleet.git")
	empty, clusters := t.TempDir(), t.TempDir()
	if err := os.CopyFS(clusters, os.DirFS("../../../examples/pipeline")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code  int
		args  []string
		words []string // the way out
	}{
		"init":          {1, []string{"init"}, []string{"hint: check the address"}},
		"dry run":       {1, []string{"init", "--dry-run"}, []string{"--bundle"}},
		"empty folder":  {1, []string{"init", "-C", empty, "--host", "embedded", "--provider", "docker"}, []string{"--bundle"}},
		"validate":      {0, []string{"validate", "-C", clusters}, []string{"--bundle"}},
		"lock":          {1, []string{"lock"}, []string{"--bundle"}},
		"lock --check":  {1, []string{"lock", "--check"}, []string{"--bundle"}},
		"bundle create": {1, []string{"bundle", "create", filepath.Join(f.base, "bundle")}, []string{"--bundle"}},
		"doctor":        {3, []string{"doctor"}, []string{"check the address"}},
		"bootstrap":     {1, []string{"bootstrap"}, []string{"hint: check the address"}},
		"push":          {1, []string{"environment", "add", "staging", "--push"}, []string{"hint: check the address"}},
		"host exec":     {1, []string{"host", "exec", "--", "true"}, []string{"use a bundle"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := f.command(c.args...)
			t.Parallel() // they wait
			cmd.Args = append([]string{script, cmd.Path}, cmd.Args[1:]...)
			cmd.Path, cmd.Dir = script, t.TempDir()
			if err := os.CopyFS(cmd.Dir, os.DirFS(f.dir)); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "FLEETCTL_CACHE_DIR="+t.TempDir(), "FLEETCTL_STATE_DIR="+t.TempDir(), "PATH="+os.Getenv("PATH"))
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took := time.Since(began)
			t.Logf("%s: %v\n%s", took.Round(time.Millisecond), err, out)
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if took > limit+busy {
				t.Errorf("it took %s", took)
			}
			for _, word := range append(c.words, "no answer within") {
				if !strings.Contains(string(out), word) {
					t.Errorf("it does not say %q", word)
				}
			}
		})
	}
}
