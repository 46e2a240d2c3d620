package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// TestSequencesOfVersions changes versions of providers on two management clusters in random ways, while new releases come. What `upgrade
// plan --to latest` and `lock` write is what `lock --check` asks for. What `provider remove` writes is that too, or a note names `lock`.
func TestSequencesOfVersions(t *testing.T) {
	for seed := *firstOne; seed < *firstOne+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			v := newVersions(t, uint64(seed))
			for range 2 * *length {
				v.next()
			}
		})
	}
}

// versions is a fleet with two management clusters and with providers whose releases are on this machine.
type versions struct {
	*sequence
	registry string
	// published counts the releases of each provider.
	published map[string]int
	// removed are the providers that a management cluster has no more, with their urls.
	removed map[string]bool
}

// componentsOf are the names of the providers' files.
var componentsOf = map[string]string{"aws": "infrastructure-components.yaml", "docker": "infrastructure-components-development.yaml"}

// versionedFleet has what the fleets of newVersions have above their management clusters, versionedCluster one of these.
const (
	versionedFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  flux: {version: v2.9.5, registry: "%s/fluxcd", url: "%s"}
  managementClusters:
`
	versionedCluster = `  - name: %[1]s
    cloud: %[1]s
    host: {type: kind}
    certManager: {version: v1.21.1, url: "file://%[2]s/cert-manager/v1.21.1/cert-manager.yaml"}
    providers:
    - {name: cluster-api, type: core, version: v1.14.2, url: "file://%[2]s/cluster-api/latest/core-components.yaml"}
    - {name: kubeadm, type: bootstrap, version: v1.14.2, url: "file://%[2]s/bootstrap-kubeadm/latest/bootstrap-components.yaml"}
    - name: kubeadm
      type: control-plane
      version: v1.14.2
      url: "file://%[2]s/control-plane-kubeadm/latest/control-plane-components.yaml"
    - {name: aws, url: "file://%[2]s/infrastructure-aws/latest/infrastructure-components.yaml"}
    - name: docker
      version: v1.14.2
      url: "file://%[2]s/infrastructure-docker/latest/infrastructure-components-development.yaml"
`
)

func newVersions(t *testing.T, seed uint64) *versions {
	t.Helper()
	v := &versions{
		sequence: &sequence{T: t, Rand: rand.New(rand.NewPCG(seed, 2)), dir: t.TempDir(), home: t.TempDir()},
		registry: bundletest.Registry(t), published: map[string]int{"aws": 2, "docker": 2}, removed: map[string]bool{},
	}
	for _, image := range []string{
		"provider:v1", "provider:v2", "provider:v3", "cert-manager:v1", "fluxcd/source-controller:v1.2.3",
		"fluxcd/kustomize-controller:v1.2.3", "fluxcd/helm-controller:v1.2.3", "fluxcd/notification-controller:v1.2.3",
	} {
		bundletest.PushImage(t, v.registry+"/"+image)
	}
	fleet := fmt.Sprintf(versionedFleet, v.registry, fluxMirror(t, "v2.9.5"))
	for _, name := range []string{"one", "two"} {
		fleet += fmt.Sprintf(versionedCluster, name, filepath.ToSlash(v.home))
	}
	err := errors.Join(writeReleases(v.home, v.registry), os.WriteFile(filepath.Join(v.dir, "fleet.yaml"), []byte(fleet), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	v.must("lock")
	v.agrees("lock")
	return v
}

// publish releases a provider once more. Its image is another tag of the one that all other components run, or the same.
func (v *versions) publish(name string) {
	v.Helper()
	v.published[name]++
	folder := filepath.Join(v.home, "infrastructure-"+name)
	to := filepath.Join(folder, fmt.Sprintf("v1.14.%d", v.published[name]))
	old, err := os.ReadFile(filepath.Join(folder, "v1.14.2", componentsOf[name]))
	metadata, err2 := os.ReadFile(filepath.Join(folder, "v1.14.2", "metadata.yaml"))
	changed := strings.ReplaceAll(string(old), "/provider:v1", fmt.Sprintf("/provider:v%d", 1+v.IntN(3)))
	if err := errors.Join(err, err2, os.Mkdir(to, 0o755), os.WriteFile(filepath.Join(to, componentsOf[name]), []byte(changed), 0o600),
		os.WriteFile(filepath.Join(to, "metadata.yaml"), metadata, 0o600)); err != nil {
		v.Fatal(err)
	}
	v.typed = append(v.typed, "(release of "+name+" "+filepath.Base(to)+")")
}

// next runs one more command.
func (v *versions) next() {
	v.Helper()
	management, name := v.one("one", "two"), v.one("aws", "docker")
	switch of := v.IntN(5); {
	case of < 2 || of == 4 && v.removed[management+name]:
		v.publish(name)
	case of < 4:
		v.does("upgrade", "plan", "--to", "latest", "--management", management)
	default:
		args := []string{"provider", "remove", name, "--management", management}
		if v.chance(60) {
			args = []string{"provider", "add", fmt.Sprintf("%s:v1.14.%d", name, 2+v.IntN(v.published[name]-1)), "--management", management}
		}
		code, _, stderr := v.run(args...)
		v.typed = append(v.typed, strings.Join(args, " "))
		if code != 0 && code != diag.ExitUsage && code != diag.ExitFailure {
			v.fail("exit %d\n%s", code, stderr)
		}
		v.removed[management+name] = args[1] == "remove" && code == 0
		if check, _, _ := v.run("lock", "--check"); args[1] == "remove" && check != 0 && !strings.Contains(stderr, "`fleetctl lock`") {
			v.fail("fleet.lock is out of date, and nothing says so: %s", stderr)
		}
		v.does("lock")
	}
}

// does runs a command whose fleet.lock has to be right.
func (v *versions) does(args ...string) {
	v.Helper()
	v.typed = append(v.typed, strings.Join(args, " "))
	v.must(args...)
	v.agrees(strings.Join(args, " "))
}

// agrees fails the test unless `lock --check` finds fleet.lock as it should be.
func (v *versions) agrees(after string) {
	v.Helper()
	if code, stdout, stderr := v.run("lock", "--check"); code != 0 {
		v.fail("after %s, lock --check: exit %d\n%s%s", after, code, stdout, stderr)
	}
}
