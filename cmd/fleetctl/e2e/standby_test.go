//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestStandby: a standby waits beside a management cluster, with its providers stopped. The management cluster is lost with its host, and
// the standby takes over from the last snapshot: the clusters live on with the same machines, and a commit still scales one.
func TestStandby(t *testing.T) {
	h := newSource(t)
	bundle := []string{"--bundle", os.Getenv(envBundle)}
	with := func(args ...string) []string { return append(args, bundle...) }
	if !h.step("a management cluster makes clusters", func(t *testing.T) {
		h.declaresWith(t, fmt.Sprintf("  snapshots: {to: %q}\n", filepath.Join(h.base, "snapshots")))
	}) {
		return
	}
	before, standby := h.machines(h.source), (*kube.Client)(nil)
	if !h.step("a standby is made beside it, and does nothing", func(t *testing.T) {
		h.fails(2, []string{"is no standby"}, "standby", "activate", h.name, "--source-is-gone")
		h.ok("standby", "add", "spare", "--host", "embedded", "--push")
		h.fails(3, []string{"fleetctl init --management spare"}, "standby", "activate", "spare", "--source-is-gone")
		made := decode[initResult](t, h.ok(with("init", "--management", "spare", "-o", "json")...).stdout)
		standby = h.client(made.Kubeconfig)
		if !h.halted(standby) || len(h.machines(standby)) != 0 {
			t.Error("its providers run, or it has machines")
		}
		again := decode[initResult](t, h.ok(with("init", "--management", "spare", "-o", "json")...).stdout)
		if again.Changed || !h.halted(standby) {
			t.Errorf("init again: changed %t", again.Changed)
		}
		if st, code := h.status("--management", "spare"); code != 3 || !strings.Contains(fmt.Sprint(st.Problems), "no snapshot") {
			t.Errorf("status: exit %d, %+v", code, st.Problems)
		}
		h.ready(time.Minute) // the management cluster is as it was
		h.sameMachines(t, before, h.source)
	}) {
		return
	}
	if !h.step("it follows the snapshots", func(t *testing.T) {
		h.fails(1, []string{"find a snapshot"}, "standby", "refresh", "spare")
		h.ok("backup", "--management", h.name)
		r := decode[struct {
			Works    bool           `json:"works"`
			Standby  string         `json:"standby"`
			Restored map[string]int `json:"restored"`
			Findings []struct{ Severity, Summary string }
		}](t, h.ok("standby", "refresh", "spare", "-o", "json").stdout)
		if !r.Works || r.Standby != "spare" || r.Restored["Machine"] != len(before) {
			t.Errorf("it says %+v", r)
		}
		if len(h.machines(standby)) != 0 || !h.halted(standby) {
			t.Error("it has machines, or its providers run")
		}
		if st, code := h.status("--management", "spare"); code != 0 {
			t.Errorf("status: exit %d, %+v", code, st.Problems)
		}
		if shown := h.ok("status", "--management", "spare").stdout; !strings.Contains(shown, "standby of "+h.name) ||
			!strings.Contains(shown, "last snapshot seen") {
			t.Errorf("status says\n%s", shown)
		}
		h.sameMachines(t, before, h.source)
	}) {
		return
	}
	activate := with("standby", "activate", "spare")
	if !h.step("it refuses while the management cluster lives", func(t *testing.T) {
		h.fails(1, []string{"answers at", "--hand-over"}, append(slices.Clone(activate), "--source-is-gone")...)
		kill(t, processesOf(t, filepath.Join(h.state, "clusters", h.name)))
		h.fails(1, []string{"--source-is-gone"}, activate...)
		planned := h.ok(append(slices.Clone(activate), "--dry-run")...).stdout
		if !strings.Contains(planned, "would take over from "+h.name) {
			t.Errorf("it says %s", planned)
		}
	}) {
		return
	}
	activate = append(activate, "--source-is-gone")
	if !h.step("it takes over, in a run that goes on where another was killed", func(t *testing.T) {
		r := h.begin(activate...)
		r.killedWhen(func() bool {
			journal, err := handover.ReadJournal(t.Context(), standby)
			return err == nil && journal.Active() && journal.Activates
		})
		h.fails(1, []string{"is taking over", "fleetctl standby activate spare"}, with("init", "--management", "spare")...)
		r = h.begin(activate...) // it has the work, and fleet.yaml does not say so
		r.killedWhen(func() bool {
			journal, err := handover.ReadJournal(t.Context(), standby)
			return err == nil && journal != nil && journal.Activates && journal.Phase.Committed()
		})
		h.ok(activate...)
		h.name = "spare"
		h.ready(5 * time.Minute)
		h.sameMachines(t, before, standby)
	}) {
		return
	}
	h.step("a commit still scales one", func(*testing.T) { h.scaled(standby, "two", 2) })
	h.step("fleet.yaml has it in the place of the other one", func(t *testing.T) {
		content, err := os.ReadFile(filepath.Join(h.dir, "fleet.yaml"))
		if err != nil || strings.Contains(string(content), "standbys") || strings.Contains(string(content), "e2e-source") ||
			!strings.Contains(string(content), "name: spare") {
			t.Errorf("%v\n%s", err, content)
		}
		if said := h.ok("standby", "activate", "spare", "--source-is-gone").stdout; !strings.Contains(said, "nothing to do") {
			t.Errorf("a run after the end says %s", said)
		}
		h.ok(with("init")...)
		h.ok("backup")
		h.ok("host", "delete", "--management", "e2e-source", "--yes")
		h.ready(time.Minute)
	})
}
