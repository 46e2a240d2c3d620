//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSecondEnvironment: the first environment's management cluster stands alone, and there is no root any more. A machine that knows none
// of this bootstraps a second environment from nothing but Git and the fleet's age key. The first one goes on, untouched.
func TestSecondEnvironment(t *testing.T) {
	const second = "e2e-us"
	t.Cleanup(func() { removeContainers(t, second+"-") }) // no management cluster above could delete it
	a := newStandingAlone(t, "e2e-seed", "e2e-first")
	f, server, first := a.fleet, a.server, a.child
	f.commit("The masters", a.files)
	if !a.madeAlone() {
		return
	}
	machines := engineIDs(t, first+"-")
	if !f.step("commands declare a second management cluster, and what it makes", func(t *testing.T) {
		values := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(values, []byte(dockerValues(0, nodeImage(t))+"pools: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f.ok("cluster", "add", second, "--management", f.name, "--flavour", "docker", "--environment", "regions", "--flux", "none",
			"--values", values, "--push")
		f.ok("management", "add", second, "--parent", f.name, "--provider", "docker", "--cloud", "us", "--push")
		f.ok("environment", "add", "next", "--push")
		f.ok("cluster", "add", "market", "--management", second, "--flavour", "in-memory", "--environment", "next",
			"--set", "kubernetesVersion="+kubernetesVersion, "--set", "pools[0].name=md-0", "--set", "pools[0].replicas=1", "--push")
		f.ok("validate")
	}) {
		return
	}
	f.forgets()
	if !f.step("another machine bootstraps it: a root is made from Git, makes it, and ends", func(t *testing.T) {
		args := []string{"bootstrap", "--environment", "next", "--age-key-file", f.ageKey(f.lost()), "-o", "json"}
		r := decode[masterResult](t, f.ok(slices.Concat(args, a.bundle)...).stdout)
		if r.Outcome != "ready" || !r.Alone || !r.ParentGone || !slices.Equal(r.HandedOver, []string{"regions/" + second}) {
			t.Errorf("it says %+v", r)
		}
		if left := a.on.processes(f); len(left) > 0 {
			t.Errorf("processes of the root:\n%s", told(left))
		}
		server.File(t, "main", "providers/us/v1/clusters/regions/"+second+"/cluster.yaml")
		server.File(t, "main", "providers/us/v1/clusters/next/market/cluster.yaml")
	}) {
		return
	}
	alone := func(name, made string) {
		eventually(f.t, name+" stands alone, and has made "+made, 5*time.Minute, func() string {
			st, code := f.status("--management", name)
			var names []string
			for _, c := range st.Clusters {
				if c.Available {
					names = append(names, c.Name)
				}
			}
			slices.Sort(names)
			if want := []string{name, made}; code != 0 || !slices.Equal(names, want) {
				return fmt.Sprintf("exit %d, %v, %+v", code, names, st.Problems)
			}
			return ""
		})
	}
	f.step("it stands alone", func(*testing.T) { alone(second, "market") })
	f.step("the first one goes on, with the same machines", func(t *testing.T) {
		was, err := filepath.Rel(f.state, a.kubeconfig)
		if err != nil || !filepath.IsLocal(was) {
			t.Fatalf("the kubeconfig %s is not in the state folder: %v", a.kubeconfig, err)
		}
		f.ok("connect", "--management", first, "--kubeconfig", filepath.Join(f.lost(), was))
		alone(first, "shop")
		if now := engineIDs(t, first+"-"); !slices.Equal(now, machines) {
			t.Errorf("containers before: %v, now: %v", machines, now)
		}
		if there := f.git("ls-files", path.Join("providers/root/v1/clusters/regions", first)); there != "" {
			t.Errorf("the root would make it again: %s", there)
		}
	})
}

// engineIDs are the names and ids of the containers whose names begin with the prefix, sorted.
func engineIDs(t *testing.T, prefix string) []string {
	t.Helper()
	var out []string
	for _, line := range lines(engine(t, "ps", "-a", "--no-trunc", "--format", "{{.Names}} {{.ID}}")) {
		if strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}
