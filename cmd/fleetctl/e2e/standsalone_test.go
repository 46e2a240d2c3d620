//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// masterResult is what `bootstrap --stand-alone` prints with -o json.
type masterResult struct {
	Outcome     string   `json:"outcome"`
	HandedOver  []string `json:"handedOver"`
	Alone       bool     `json:"alone"`
	ParentGone  bool     `json:"parentGone"`
	ParentKeeps []string `json:"parentKeeps"`
	Kubeconfig  string   `json:"kubeconfig"`
}

// standingAlone is the example of masters on this machine: an embedded root, which makes the management cluster child of containers. child
// ends up standing alone.
type standingAlone struct {
	*fleet
	server    *gittest.HTTPS    // has the masters' fleet repo
	child     string            // name of the management cluster
	files     map[string]string // the masters' fleet repo, not committed yet
	bundle    []string
	of        []string // names child to a command
	bootstrap []string // the command that makes child stand alone

	kubeconfig string // of child, once madeAlone has returned true
}

// newStandingAlone makes a fleet of the name root, and an empty repository on a Git server for it.
func newStandingAlone(t *testing.T, root, child string, flags ...string) *standingAlone {
	t.Helper()
	t.Cleanup(func() { removeContainers(t, child+"-") }) // no management cluster above child could delete it
	f := newFleetOn(t, onEmbeddedBesideEngine, root)
	server := newServer(t)
	f.token, f.fluxToken = server.Token, server.ReadToken
	f.git("init", "-q", "-b", "main")
	a := &standingAlone{
		fleet: f, server: server, child: child, files: masters(t, server, f.name, child),
		bundle: []string{"--bundle", os.Getenv(envBundle)}, of: []string{"--management", child},
	}
	a.bootstrap = slices.Concat([]string{"bootstrap", "--environment", "prod", "-o", "json"}, flags, a.bundle)
	return a
}

// newServer is a Git server that containers on this machine reach.
func newServer(t *testing.T) *gittest.HTTPS {
	t.Helper()
	return gittest.NewHTTPS(t, gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")})
}

// madeAlone runs the command, and says whether child stands alone afterwards.
func (a *standingAlone) madeAlone() bool {
	return a.step("one command makes the root and the new management cluster, and ends the root", func(t *testing.T) {
		r := decode[masterResult](t, a.ok(a.bootstrap...).stdout)
		if r.Outcome != "ready" || !r.Alone || !r.ParentGone || !slices.Equal(r.HandedOver, []string{"regions/" + a.child}) {
			t.Errorf("it says %+v", r)
		}
		a.kubeconfig = r.Kubeconfig
		if left := a.on.processes(a.fleet); len(left) > 0 {
			t.Errorf("processes of the root:\n%s", told(left))
		}
	})
}

// scales pushes a commit in the fleet repo of from that scales the cluster of child.
func (a *standingAlone) scales(from *fleet) {
	a.step("a commit scales its cluster", func(t *testing.T) {
		from.ok("pool", "scale", "shop", "md-0", "--replicas", "2", "--push")
		eventually(t, "shop has two workers", 4*time.Minute, func() string {
			st, code := from.status(a.of...)
			for _, c := range st.Clusters {
				if c.Name == "shop" && len(c.Machines) == 3 && code == 0 {
					return ""
				}
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
	})
}

// nothingToDo runs the command again.
func (a *standingAlone) nothingToDo() {
	a.step("the same command again has nothing to do, and makes no root", func(t *testing.T) {
		r := decode[masterResult](t, a.ok(a.bootstrap...).stdout)
		if r.Outcome != "ready" || len(r.HandedOver) > 0 || len(a.on.processes(a.fleet)) > 0 {
			t.Errorf("it says %+v", r)
		}
	})
}

// TestStandsAlone brings the example up in one command: an ephemeral root makes a cluster of containers, which becomes a management
// cluster, takes its own Cluster over, and stands alone. From then on there is no root; it is made anew from nothing but Git, and makes
// nothing twice.
func TestStandsAlone(t *testing.T) {
	a := newStandingAlone(t, "e2e-above", "e2e-alone")
	f, server, child := a.fleet, a.server, a.child
	f.commit("The masters", a.files)
	if !a.madeAlone() {
		return
	}
	f.step("the fleet repo says so", func(t *testing.T) {
		record := server.File(t, "main", "providers/root/v1/handed-over/"+child+".yaml")
		for _, want := range []string{"cluster: regions/" + child, "at: ", "by: ", "fleetctl: "} {
			if !strings.Contains(record, want) {
				t.Errorf("the record has no %q:\n%s", want, record)
			}
		}
		server.File(t, "main", "providers/eu/v1/clusters/regions/"+child+"/cluster.yaml")
		if there := f.git("ls-files", "providers/root/v1/clusters"); strings.Contains(there, child) {
			t.Errorf("the root would make it again: %s", there)
		}
		f.ok("validate")
	})
	f.step("it works without the root", func(t *testing.T) {
		f.ok(append([]string{"init", "-o", "json"}, append(a.bundle, a.of...)...)...)
		f.ok(append([]string{"doctor"}, append(a.bundle, a.of...)...)...)
		eventually(t, "it is Ready, with its own Cluster and the one that it makes", 5*time.Minute, func() string {
			st, code := f.status(a.of...)
			if code != 0 || len(st.Clusters) != 2 {
				return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
			}
			return ""
		})
	})
	a.scales(f)
	a.nothingToDo()
	f.step("a root made from nothing but Git makes nothing twice", func(t *testing.T) {
		f.ok(append([]string{"init", "--management", f.name}, a.bundle...)...)
		if st, code := f.status("--management", f.name); code != 0 || len(st.Clusters) > 0 {
			t.Errorf("status: exit %d, %+v", code, st)
		}
		if made := containers(t, child+"-"); len(made) != 2 { // its node and its load balancer
			t.Errorf("containers: %v", made)
		}
	})
	f.step("it gives its own Cluster back to the root, which looks after the machines again", func(t *testing.T) {
		f.ok("cluster", "transfer", child, "--to", f.name, "--push", "--yes")
		if st, code := f.status("--management", f.name); code != 0 || len(st.Clusters) != 1 || !st.Clusters[0].Available {
			t.Errorf("status: exit %d, %+v", code, st)
		}
	})
	f.step("and takes it over again, killed in the midst of it, whereafter the root can be torn down", func(t *testing.T) {
		f.fails(1, []string{child + "/" + child}, "teardown", "--management", f.name)
		f.killedAt(f.client(a.kubeconfig), handover.PhaseCopied, a.bootstrap)
		r := decode[masterResult](t, f.ok(a.bootstrap...).stdout)
		if r.Outcome != "ready" || !r.Alone || r.ParentGone || !slices.Equal(r.HandedOver, []string{"regions/" + child}) {
			t.Errorf("it says %+v", r) // init has made this root, not bootstrap: it stays
		}
		f.ok("teardown", "--yes", "--management", f.name)
		eventually(t, "it stands alone", 3*time.Minute, func() string {
			if st, code := f.status(a.of...); code != 0 || len(st.Clusters) != 2 {
				return fmt.Sprintf("exit %d, %+v", code, st.Problems)
			}
			return ""
		})
	})
}
