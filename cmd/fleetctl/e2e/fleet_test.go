//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// servedBy declares a management cluster on an embedded host, with providers (names with commas between them), whose fleet repo is on that
// server; more is what fleet.yaml has in its spec besides. Flux gets a token of its own.
func (f *fleet) servedBy(server *gittest.HTTPS, providers, more string) {
	f.t.Helper()
	f.token, f.fluxToken = server.Token, server.ReadToken
	f.writes("ca.pem", string(server.CA))
	f.writes("fleet.yaml", fmt.Sprintf(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: served}
spec:
  git: {url: "%s", caFile: ca.pem, interval: 5s}
  environments: [{name: dev}]
%s  managementClusters:
  - name: %s
    kubernetesVersion: %s
    host: {type: embedded}
    providers: [{name: %s}]
`, server.URL, more, f.name, kubernetesVersion, strings.ReplaceAll(providers, ",", "}, {name: ")))
}

// pushesTo pushes what is committed, with git alone.
func (f *fleet) pushesTo(t *testing.T, server *gittest.HTTPS) {
	t.Helper()
	authority := filepath.Join(f.base, "git-ca.pem")
	if err := os.WriteFile(authority, server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_SSL_CAINFO", authority) // which goes before the configuration
	f.git("push", "-q", strings.Replace(server.URL, "https://", "https://"+server.Username+":"+server.Token+"@", 1), "main")
}

// clusterFile is a HelmRelease as a platform engineer would commit it: the whole declaration of one cluster, with a chart of its own.
func clusterFile(flavour, name, values string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %[2]s
  annotations:
    kustomize.toolkit.fluxcd.io/prune: disabled
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: %[2]s
  namespace: %[2]s
  annotations:
    kustomize.toolkit.fluxcd.io/prune: disabled
spec:
  interval: 1m
  releaseName: %[2]s
  chart:
    spec:
      chart: ./charts/%[1]s
      sourceRef:
        kind: GitRepository
        name: flux-system
        namespace: flux-system
      reconcileStrategy: Revision
  install:
    disableWait: true
    strategy:
      name: RetryOnFailure
      retryInterval: 10s
  upgrade:
    disableWait: true
    strategy:
      name: RetryOnFailure
      retryInterval: 10s
  values:
%[3]s`, flavour, name, indent(values, "    "))
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(by + line + "\n")
	}
	return b.String()
}

// example is a file of the examples, which readers copy.
func example(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// onThisMachine adds to a cluster of the docker flavour what the examples say for a machine with cgroup v1.
func onThisMachine(cluster string) string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return cluster
	}
	return strings.Replace(cluster, "    controlPlane:\n", "    kubeletExtraArgs:\n      fail-cgroupv1: \"false\"\n    controlPlane:\n", 1)
}

func clusterPath(name string) string {
	return "providers/docker/v1/clusters/dev/" + name + "/cluster.yaml"
}

// chartPath is the chart that the clusters of dev with a flavour share.
func chartPath(flavour string) string {
	return "providers/docker/v1/clusters/dev/chart-" + flavour + ".yaml"
}

// dockerValues declare a cluster of containers. An image with all controllers in it makes it fit to become a
// management cluster: with workloads on the control plane, and the engine's socket. The kubelets of all nodes together take a third of a
// machine with two CPUs. Most of that is for reading the use of resources every ten seconds, which nothing here looks at.
func dockerValues(workers int, image string) string {
	values := `
kubernetesVersion: ` + kubernetesVersion + `
kubeletExtraArgs:
  fail-cgroupv1: "false"
  housekeeping-interval: 30s
controlPlane:
  replicas: 1
  taints: []
`
	if workers > 0 {
		values += fmt.Sprintf("pools:\n- name: md-0\n  replicas: %d\n", workers)
	}
	if image != "" {
		values += fmt.Sprintf("node:\n  image: %s\n  extraMounts:\n  - hostPath: %s\n    containerPath: /var/run/docker.sock\n",
			image, engineSocket())
	}
	return values
}

// engineSocket is the engine's API on this machine, as the docker provider of a management cluster on the same engine mounts it.
func engineSocket() string {
	if os.Getenv("KIND_EXPERIMENTAL_PROVIDER") == "podman" {
		return "/run/podman/podman.sock"
	}
	return "/var/run/docker.sock"
}
