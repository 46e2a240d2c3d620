//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestStandsAloneInItsOwnRepo brings the example in two repos up: the masters' repo makes a management cluster, whose own repository is made, pushed and followed
// with tokens of its own. After that neither the root nor the masters' repo is there any more.
func TestStandsAloneInItsOwnRepo(t *testing.T) {
	const child, environment = "e2e-own", "prod"
	t.Cleanup(func() { removeContainers(t, child+"-") }) // it has nobody above it who could take it down
	f := newFleetOn(t, onEmbeddedBesideEngine, "e2e-owner")
	at := gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")}
	above, own := gittest.NewHTTPS(t, at), gittest.NewHTTPS(t, at)
	f.token, f.fluxToken = above.Token, above.ReadToken
	files := masters(t, above, f.name, child)
	files["own-ca.pem"] = string(own.CA)
	declared := "    cloud: eu\n"
	if strings.Count(files["fleet.yaml"], declared) != 1 {
		t.Fatalf("fleet.yaml of the example:\n%s", files["fleet.yaml"])
	}
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], declared, declared+fmt.Sprintf(`    repository:
      git:
        url: %s
        username: %s
        caFile: own-ca.pem
        interval: 10s
      environments: [prod]
`, own.URL, own.Username), 1)
	f.git("init", "-q", "-b", "main")
	f.commit("The masters", files)
	tokens := filepath.Join(f.home, "own-token")
	readToken := filepath.Join(f.home, "own-read-token")
	for name, token := range map[string]string{tokens: own.Token, readToken: own.ReadToken} {
		if err := os.WriteFile(name, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bundle := []string{"--bundle", os.Getenv(envBundle)}
	clone := filepath.Join(f.base, "own")
	bootstrap := append([]string{
		"bootstrap", "--environment", environment, "-o", "json", "--own-repo", clone, "--own-git-token-file", tokens, "--own-flux-token-file", readToken,
	}, bundle...)
	of := []string{"--management", child}

	var kubeconfig string
	if !f.step("one command makes the root, the repository, the new one, and ends the root", func(t *testing.T) {
		r := decode[masterResult](t, f.ok(bootstrap...).stdout)
		if r.Outcome != "ready" || !r.Alone || !r.ParentGone || !slices.Equal(r.HandedOver, []string{"regions/" + child}) {
			t.Errorf("it says %+v", r)
		}
		kubeconfig = r.Kubeconfig
		if left := f.on.processes(f); len(left) > 0 {
			t.Errorf("processes of the root:\n%s", told(left))
		}
	}) {
		return
	}
	x := *f // who works in the repository of its own, with nothing of the masters
	x.t, x.dir, x.token, x.fluxToken = t, clone, own.Token, own.ReadToken
	f.step("each repository has its part", func(t *testing.T) {
		for _, name := range []string{"providers/eu/v1/clusters/regions/" + child + "/cluster.yaml", "providers/eu/v1/clusters/prod/shop/cluster.yaml", "providers/eu/v1/mgmt/flux-system/gotk-sync.yaml"} {
			own.File(t, "main", name)
		}
		if there := x.git("ls-files", "providers/root"); there != "" {
			t.Errorf("the repository of its own has %s", there)
		}
		f.git("pull", "-q", "--ff-only", "origin", "main")
		if there := f.git("ls-files", "providers/eu", "providers/root/v1/clusters/regions/"+child); there != "" {
			t.Errorf("the masters' repository has %s", there)
		}
		if record := above.File(t, "main", "providers/root/v1/handed-over/"+child+".yaml"); !strings.Contains(record, "cluster: regions/"+child) || strings.Contains(record, "handingOver") {
			t.Errorf("the record:\n%s", record)
		}
		f.ok("validate")
		x.ok("validate")
		x.ok("diff")
		f.fails(2, []string{"has a fleet repo of its own, " + own.URL}, append([]string{"init"}, of...)...)
	})
	f.step("its Flux follows its own path of its own repository, with its own token", func(t *testing.T) {
		mgmt := x.client(kubeconfig)
		url, path, password := sourceOf(t, mgmt)
		if url != own.URL || path != "./providers/eu/v1/mgmt" || password != own.ReadToken {
			t.Errorf("it follows %s of %s", path, url)
		}
	})
	f.step("it works from either repository, without the root", func(t *testing.T) {
		x.ok(append([]string{"init", "-o", "json"}, append(bundle, of...)...)...)
		for name, where := range map[string]*fleet{"its own": &x, "the masters'": f} {
			eventually(t, "it is Ready, seen from "+name, 5*time.Minute, func() string {
				st, code := where.status(of...)
				if code != 0 || len(st.Clusters) != 2 {
					return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
				}
				return ""
			})
		}
	})
	f.step("a commit scales its cluster", func(t *testing.T) {
		x.ok("pool", "scale", "shop", "md-0", "--replicas", "2", "--push")
		eventually(t, "shop has two workers", 4*time.Minute, func() string {
			st, code := x.status(of...)
			for _, c := range st.Clusters {
				if c.Name == "shop" && len(c.Machines) == 3 && code == 0 {
					return ""
				}
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
	})
	f.step("the same command again has nothing to do, and makes no root", func(t *testing.T) {
		r := decode[masterResult](t, f.ok(bootstrap...).stdout)
		if r.Outcome != "ready" || len(r.HandedOver) > 0 || len(f.on.processes(f)) > 0 {
			t.Errorf("it says %+v", r)
		}
	})
}

// sourceOf is what the Flux of a management cluster follows, and with which password.
func sourceOf(t *testing.T, c *kube.Client) (url, path, password string) {
	t.Helper()
	key := kube.Key{Namespace: flux.Namespace, Name: flux.Name}
	source := object("source.toolkit.fluxcd.io/v1", "GitRepository")
	sync := object("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	credentials := &corev1.Secret{}
	for _, o := range []client.Object{source, sync, credentials} {
		if err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	url, _, _ = unstructured.NestedString(source.Object, "spec", "url")
	path, _, _ = unstructured.NestedString(sync.Object, "spec", "path")
	_, password = flux.PasswordIn(credentials)
	return url, path, password
}
