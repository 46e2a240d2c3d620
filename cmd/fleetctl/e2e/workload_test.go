//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// What every cluster of an environment runs, in the words of TestWorkloadFlux.
const greeting = `apiVersion: v1
kind: ConfigMap
metadata:
  name: greeting
  namespace: default
data:
  said: ${cluster_name} in ${environment}
`

// TestWorkloadFlux follows two clusters of containers, in two environments, from `cluster add --commit` to what each of them runs, applied by
// its own Flux with credentials that are encrypted in Git; then to their end, one of them with an API server that is dead.
func TestWorkloadFlux(t *testing.T) {
	f := newFleet(t, "e2e-flux")
	before := f.on.leftBehind(f)
	made := decode[initResult](t, f.ok(initArgs("--environment", "staging")...).stdout)
	f.ok("environment", "add", "prod", "--production=false", "--commit")
	for _, environment := range []string{"staging", "prod"} {
		f.commit("greet in "+environment, map[string]string{"providers/docker/v1/clusters/" + environment + "/common/apps/greeting.yaml": greeting})
	}
	clusters := map[string]string{"west": "staging", "east": "prod"}
	values := filepath.Join(f.home, "values.yaml")
	if err := os.WriteFile(values, []byte(dockerValues(0, nodeImage(t))+"pools: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, environment := range clusters {
		f.ok("cluster", "add", name, "--flavour", "docker", "--environment", environment, "--values", values, "--commit")
	}
	f.step("each cluster runs what its environment has", func(t *testing.T) {
		eventually(t, "both clusters are Ready", 10*time.Minute, func() string {
			st, code := f.status()
			for _, c := range st.Clusters {
				if c.Available && c.Flux.Ready != c.Ready {
					t.Errorf("an Available cluster is Ready with its Flux, not before: %+v", c)
				}
			}
			if code == 0 && len(st.Clusters) == len(clusters) {
				return ""
			}
			return fmt.Sprintf("%+v", st.Problems)
		})
		for name, environment := range clusters {
			client := f.workload(name)
			var said corev1.ConfigMap
			if err := client.Get(t.Context(), kube.Key{Namespace: "default", Name: "greeting"}, &said); err != nil {
				t.Fatal(err)
			}
			if want := name + " in " + environment; said.Data["said"] != want {
				t.Errorf("%s says %q, want %q", name, said.Data["said"], want)
			}
		}
	})
	if t.Failed() {
		return
	}
	f.step("the credentials in Git are encrypted", func(t *testing.T) {
		sealed := f.git("show", "HEAD:providers/docker/v1/clusters/prod/common/sync/git-auth.sops.yaml")
		if !strings.Contains(sealed, "password: ENC[") {
			t.Errorf("not encrypted:\n%s", sealed)
		}
	})
	f.step("what was committed is applied by the cluster itself", func(t *testing.T) {
		f.commit("greet again", map[string]string{
			"providers/docker/v1/clusters/prod/common/apps/greeting.yaml": strings.Replace(greeting, "in ", "still in ", 1),
		})
		client := f.workload("east")
		eventually(t, "east greets again", 3*time.Minute, func() string {
			var said corev1.ConfigMap
			if err := client.Get(t.Context(), kube.Key{Namespace: "default", Name: "greeting"}, &said); err != nil {
				return err.Error()
			}
			if said.Data["said"] == "east still in prod" {
				return ""
			}
			return said.Data["said"]
		})
	})
	for _, name := range []string{"west", "east"} {
		f.step("cluster remove leaves nothing of "+name, func(t *testing.T) {
			if name == "east" { // its API server is dead by now
				for _, node := range containers(t, name+"-") {
					if !strings.HasSuffix(node, "-lb") { // the docker provider itself cannot do without that
						engine(t, "kill", node)
					}
				}
			}
			f.ok("cluster", "remove", name, "--commit", "--wait")
			f.ok("cluster", "remove", name, "--yes", "--commit", "--wait", "--timeout", "6m")
			if left := containers(t, name+"-"); len(left) > 0 {
				t.Errorf("containers: %v", left)
			}
			var namespace corev1.Namespace
			if err := f.client(made.Kubeconfig).Get(t.Context(), kube.Key{Name: name}, &namespace); !kube.IsAbsent(err) {
				t.Errorf("the namespace is still there: %v", err)
			}
		})
		if t.Failed() {
			return
		}
	}
	f.ok("teardown")
	f.nothingLeft(before)
}

// workload is a client of a workload cluster, as its user gets it.
func (f *fleet) workload(name string) *kube.Client {
	f.t.Helper()
	path := filepath.Join(f.home, name+".kubeconfig")
	f.ok("cluster", "kubeconfig", name, "--output-file", path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		f.t.Errorf("kubeconfig of %s: %v, %v; want mode 0600", name, info, err)
	}
	return f.client(path)
}

func (f *fleet) client(kubeconfig string) *kube.Client {
	f.t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		f.t.Fatal(err)
	}
	client, err := kube.New(content, kube.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return client
}
