//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// TestMasterOfMasters brings the example up: a management cluster makes a cluster of containers, which becomes a management cluster itself
// and makes a cluster of its own, all from one repo. That is on a Git server behind TLS, with a token. The first is on the embedded host,
// beside the engine that its docker provider works with.
func TestMasterOfMasters(t *testing.T) {
	const child = "e2e-eu"
	t.Cleanup(func() { removeContainers(t, child+"-") }) // last of all: the parent takes them down in order
	f := newFleetOn(t, onEmbeddedBesideEngine, "e2e-root")
	server := gittest.NewHTTPS(t, gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")})
	server.Seed(t, "main", masters(t, server, f.name, child))
	ca := filepath.Join(f.home, "ca.pem")
	if err := os.WriteFile(ca, server.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	args := initArgs("--git-url", server.URL, "--git-username", server.Username, "--git-ca-file", ca, "--management", f.name)
	refused := func(said string) {
		f.t.Helper()
		f.fails(1, []string{said}, args...)
		if made := f.on.processes(f); len(made) > 0 {
			f.t.Errorf("processes:\n%s", told(made))
		}
	}
	f.step("without the token, nothing is created", func(*testing.T) { refused("FLEETCTL_GIT_TOKEN") })
	f.step("with a token that may only read, nothing is created", func(*testing.T) {
		f.token = server.ReadToken
		refused("push")
	})
	f.token, f.fluxToken = server.Token, server.ReadToken
	root := []string{"--management", f.name}
	if !f.step("the parent comes up", func(t *testing.T) {
		r := decode[initResult](t, f.ok(args...).stdout)
		if head := server.Head(t, "main"); head != r.Revision {
			t.Errorf("init reports %s, the remote is at %s", r.Revision, head)
		}
		if now := server.File(t, "main", "fleet.yaml"); !strings.Contains(now, "# management clusters, made by root") ||
			!strings.Contains(now, "version: v") {
			t.Errorf("fleet.yaml does not pin the versions, or has lost a comment:\n%s", now)
		}
		for _, name := range []string{"fleet.yaml", "providers/root/v1/mgmt/flux-system/gotk-sync.yaml"} {
			if strings.Contains(server.File(t, "main", name), server.Token) {
				t.Errorf("the token is in %s, in Git", name)
			}
		}
	}) {
		return
	}
	bundled := []string{"init", "--bundle", os.Getenv(envBundle), "-o", "json", "--management", child}
	if !f.step("the child has to be Available first", func(*testing.T) {
		f.fails(3, []string{"ask management cluster " + f.name, "is not Available yet"}, bundled...)
	}) {
		return
	}
	available := func(t *testing.T, mgmt, cluster string, limit time.Duration) {
		eventually(t, cluster+" is Available", limit, func() string {
			st, code := f.status("--management", mgmt)
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
	f.step("a push by somebody else is applied", func(t *testing.T) {
		head := server.Seed(t, "main", note("providers/root/v1/mgmt"))
		eventually(t, "status shows the new revision", 3*time.Minute, func() string {
			if st, code := f.status(root...); code != 0 || !st.shows(head) {
				return fmt.Sprintf("exit %d, want %s: %+v", code, head, st)
			}
			return ""
		})
	})
	f.step("the child becomes a management cluster", func(t *testing.T) {
		f.ok(bundled...)
		available(t, child, "shop", 3*time.Minute)
		if again := decode[initResult](t, f.ok(bundled...).stdout); again.Changed {
			t.Error("init again changed something")
		}
	})
	f.step("what carries others is not removed", func(*testing.T) {
		f.fails(1, []string{"is a management cluster of this fleet"}, "cluster", "remove", child)
		f.fails(1, []string{"shop/shop"}, "teardown", "--management", child)
	})
	f.leavesRemote(server.Repo, func() {
		for _, cluster := range []string{child, f.name} {
			f.ok("teardown", "--delete-clusters", "--yes", "--management", cluster)
		}
		if left := containers(f.t, child+"-"); len(left) > 0 {
			f.t.Errorf("containers: %v", left)
		}
		if left := f.on.processes(f); len(left) > 0 {
			f.t.Errorf("processes:\n%s", told(left))
		}
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
		"- name: root", "- name: "+root, "type: kind", "type: embedded", "- name: eu", "- name: "+child, "parent: root", "parent: "+root,
		"    url: https://git.example.com/platform/fleet.git\n",
		fmt.Sprintf("    url: %s\n    username: %s\n    caFile: ca.pem\n    interval: 10s\n", server.URL, server.Username),
	).Replace(example(t, "master-of-masters/fleet.yaml"))
	declared := strings.NewReplacer(
		": eu\n", ": "+child+"\n", "    node:\n", "    node:\n      image: "+nodeImage(t)+"\n", "hostPath: /var/run/docker.sock",
		"hostPath: "+engineSocket(),
	).Replace(onThisMachine(example(t, "master-of-masters/"+eu)))
	files := map[string]string{
		"fleet.yaml": fleet, "ca.pem": string(server.CA), strings.Replace(eu, "/eu/cluster", "/"+child+"/cluster", 1): declared,
	}
	for _, name := range []string{
		shop, path.Join(path.Dir(path.Dir(eu)), "chart-docker.yaml"),
		path.Join(path.Dir(path.Dir(shop)), "chart-in-memory.yaml"),
	} {
		files[name] = example(t, "master-of-masters/"+name)
	}
	return files
}
