//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// TestMasterOfMasters brings the example up: a management cluster makes a cluster of containers, which becomes a management cluster itself
// and makes a cluster of its own, all from one repo.
func TestMasterOfMasters(t *testing.T) {
	const child = "e2e-eu"
	t.Cleanup(func() { removeContainers(t, child+"-") }) // last of all: the parent takes them down in order
	f := newFleet(t, "e2e-root")
	server := gittest.NewHTTPS(t, gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")})
	f.token = server.Token
	server.Seed(t, "main", masters(t, server, f.name, child))
	ca := filepath.Join(f.home, "ca.pem")
	if err := os.WriteFile(ca, server.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	remote := []string{"--git-url", server.URL, "--git-username", server.Username, "--git-ca-file", ca}
	if !f.step("the parent comes up", func(*testing.T) { f.ok(initArgs(append(remote, "--cluster", f.name)...)...) }) {
		return
	}
	bundled := []string{"init", "--bundle", os.Getenv(envBundle), "-o", "json", "--cluster", child}
	if !f.step("the child has to be Available first", func(*testing.T) {
		f.fails(3, []string{"ask management cluster " + f.name, "is not Available yet"}, bundled...)
	}) {
		return
	}
	available := func(t *testing.T, mgmt, cluster string, limit time.Duration) {
		eventually(t, cluster+" is Available", limit, func() string {
			st, code := f.status("--cluster", mgmt)
			for _, c := range st.Clusters {
				if c.Name == cluster && c.Available && code == 0 {
					return ""
				}
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
	}
	if !f.step("the parent makes the child", func(t *testing.T) { available(t, f.name, child, 6*time.Minute) }) {
		return
	}
	f.step("the child becomes a management cluster", func(t *testing.T) {
		f.ok(bundled...)
		available(t, child, "shop", 3*time.Minute)
		if again := decode[initResult](t, f.ok(bundled...).stdout); again.Changed {
			t.Error("init again changed something")
		}
	})
	f.step("what carries others is not removed", func(*testing.T) {
		f.fails(1, []string{"is a management cluster of this fleet"}, "cluster", "remove", child)
		f.fails(1, []string{"shop/shop"}, "teardown", "--cluster", child)
	})
}

// masters are the files of the example, with names and a server of this test.
func masters(t *testing.T, server *gittest.HTTPS, root, child string) map[string]string {
	t.Helper()
	const (
		eu   = "providers/root/v1/clusters/regions/eu/cluster.yaml"
		shop = "providers/eu/v1/clusters/prod/shop/cluster.yaml"
	)
	fleet := strings.NewReplacer(
		"- name: root", "- name: "+root, "- name: eu", "- name: "+child, "parent: root", "parent: "+root,
		"    url: https://git.example.com/platform/fleet.git\n",
		fmt.Sprintf("    url: %s\n    username: %s\n    caFile: ca.pem\n    interval: 10s\n", server.URL, server.Username),
	).Replace(example(t, "master-of-masters/fleet.yaml"))
	declared := strings.NewReplacer(
		": eu\n", ": "+child+"\n", "    node:\n", "    node:\n      image: "+nodeImage(t)+"\n", "hostPath: /var/run/docker.sock", "hostPath: "+engineSocket(),
	).Replace(onThisMachine(example(t, "master-of-masters/"+eu)))
	return map[string]string{
		"fleet.yaml": fleet, "ca.pem": string(server.CA), strings.Replace(eu, "/eu/cluster", "/"+child+"/cluster", 1): declared, shop: example(t, "master-of-masters/"+shop),
	}
}
