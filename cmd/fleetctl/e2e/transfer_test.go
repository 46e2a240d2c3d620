//go:build e2e

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestTransfer hands one of two clusters to a second management cluster of the fleet, and back, with the real controllers of both. Both go
// on with the other one meanwhile.
func TestTransfer(t *testing.T) {
	h := newHandedOver(t)
	const second = "second"
	if !h.step("the first management cluster makes clusters", h.declares) ||
		!h.step("the fleet gets a second one", func(t *testing.T) { h.second(t, second) }) {
		return
	}
	before := h.machines(h.source)
	one := slices.DeleteFunc(slices.Clone(before), func(m string) bool { return !strings.HasPrefix(m, "one/") })
	two := slices.DeleteFunc(slices.Clone(before), func(m string) bool { return !strings.HasPrefix(m, "two/") })
	to := []string{"cluster", "transfer", "one", "--to", second, "--push", "--yes"}

	h.step("--dry-run counts, and changes nothing", func(t *testing.T) {
		tree := h.git("status", "--porcelain")
		said := h.ok("cluster", "transfer", "one", "--to", second, "--dry-run").stdout
		if !strings.Contains(said, "providers/docker/v2/clusters/dev/one/cluster.yaml") || !strings.Contains(said, "Machine 2") {
			t.Errorf("it says %s", said)
		}
		h.sameMachines(t, before, h.source)
		if changed := h.git("status", "--porcelain"); changed != tree {
			t.Errorf("it has changed %s", changed)
		}
	})
	h.step("an abort of nothing does nothing, and one of a run that had only begun gives Flux back", func(t *testing.T) {
		if said := h.ok("cluster", "transfer", "one", "--abort").stdout; !strings.Contains(said, "No transfer of cluster one was under way") {
			t.Errorf("it says %s", said)
		}
		system := flux.NewSystem(h.source)
		if _, err := system.LetGo(t.Context(), kube.Key{Namespace: "one", Name: "one"},
			kube.Key{Namespace: "one", Name: "one-kubeconfig"}); err != nil {
			t.Fatal(err)
		}
		if said := h.ok("cluster", "transfer", "one", "--abort").stdout; !strings.Contains(said, "manages cluster one again") {
			t.Errorf("it says %s", said)
		}
		if left, err := system.LetGoLeft(t.Context(), kube.Key{Namespace: "one", Name: "one-kubeconfig"}); err != nil || len(left) > 0 {
			t.Errorf("Flux is still kept off something: %v, %v", left, err)
		}
	})
	if !h.step("killed in the midst of it, and undone", func(t *testing.T) {
		h.killedAt(h.targetClient, handover.PhaseCopied, to)
		h.fails(1, []string{"is in the middle of the transfer of one/one", "cluster transfer one"}, "init", "--management", h.name,
			"--bundle", os.Getenv(envBundle))
		h.ok("cluster", "transfer", "one", "--abort")
		h.sameMachines(t, before, h.source)
		if left := h.machines(h.targetClient); len(left) > 0 {
			t.Errorf("machines at the second: %v", left)
		}
		h.scaled(h.source, "one", 2)
		h.scaled(h.source, "one", 1)
	}) {
		return
	}
	one = slices.DeleteFunc(h.machines(h.source), func(m string) bool { return !strings.HasPrefix(m, "one/") })
	if !h.step("killed after it has changed hands, it goes on", func(t *testing.T) {
		h.killedAt(h.source, handover.PhaseCommitted, to)
		h.fails(1, []string{"this cannot be undone"}, "cluster", "transfer", "one", "--abort")
		said := h.ok("cluster", "transfer", "one", "--push", "--yes")
		if !strings.Contains(said.stdout, h.name+" no longer knows it") {
			t.Errorf("it says %s", said.stdout)
		}
		h.sameMachines(t, one, h.targetClient)
		h.sameMachines(t, two, h.source)
	}) {
		return
	}
	h.step("each scales what it has", func(*testing.T) {
		h.scaled(h.targetClient, "one", 2)
		h.scaled(h.source, "two", 2)
	})
	h.step("nothing is left to do, and init finds both", func(t *testing.T) {
		h.ok("cluster", "transfer", "one", "--to", second)
		h.ok("init", "--management", h.name, "--bundle", os.Getenv(envBundle))
		for _, management := range []string{h.name, second} {
			// A new worker may not be Available yet.
			eventually(t, management+" is Ready, with the cluster that it has", 3*time.Minute, func() string {
				if st, code := h.status("--management", management); code != 0 || len(st.Clusters) != 1 {
					return fmt.Sprintf("exit %d, %+v", code, st.Problems)
				}
				return ""
			})
		}
		h.ok("validate")
	})
	h.step("and back", func(t *testing.T) {
		there := h.machines(h.targetClient)
		h.ok("cluster", "transfer", "one", "--to", h.name, "--push", "--yes")
		if left := h.machines(h.targetClient); len(left) > 0 {
			t.Errorf("machines at the second: %v", left)
		}
		back := slices.DeleteFunc(h.machines(h.source), func(m string) bool { return !strings.HasPrefix(m, "one/") })
		if !slices.Equal(back, there) {
			t.Errorf("at the first: %v, and there were %v", back, there)
		}
		h.scaled(h.source, "one", 1)
	})
}

// second declares a second management cluster of the fleet and makes it on a machine of its own, which this one connects to.
func (h *handedOver) second(t *testing.T, name string) {
	remote, err := url.Parse(h.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.place.leadIn(h.whole, remote.Host)
	h.ok("management", "add", name, "--provider", "docker", "--host", "embedded", "--push")
	other := *h.other // on another machine, in the same clone
	other.t, other.name, other.dir, other.token, other.fluxToken = t, name, h.dir, h.token, h.fluxToken
	made := decode[initResult](t, other.ok("init", "--management", name, "--bundle", os.Getenv(envBundle), "--age-key-file",
		h.ageKey(h.state), "-o", "json").stdout)
	h.leadsTo(t, made.Kubeconfig, "second")
	h.ok("connect", "--management", name, "--kubeconfig", h.target)
	eventually(t, "the second follows the fleet repo", 3*time.Minute, func() string {
		if st, code := h.status("--management", name); code != 0 {
			return fmt.Sprint(st.Problems)
		}
		return ""
	})
}
