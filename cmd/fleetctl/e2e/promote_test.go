//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// promotions is what `fleetctl promote --status -o json` says, as far as the test looks at it.
type promotions struct {
	Environments []struct {
		Name    string `json:"name"`
		Tag     string `json:"tag"`
		Wanted  string `json:"wanted"`
		Applied string `json:"applied"`
		Ready   bool   `json:"ready"`
		Reason  string `json:"reason"`
		Waiting []struct {
			Subject string `json:"subject"`
		} `json:"waiting"`
	} `json:"environments"`
}

// workers counts the machines of a cluster that are no control plane; -1 where there is no such cluster.
func (f *fleet) workers(name string) int {
	f.t.Helper()
	st, _ := f.status()
	for _, c := range st.Clusters {
		if c.Name != name {
			continue
		}
		count := 0
		for _, m := range c.Machines {
			if !m.ControlPlane {
				count++
			}
		}
		return count
	}
	return -1
}

// has waits until a cluster has that many workers.
func (f *fleet) has(name string, workers int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s has %d workers", name, workers), 4*time.Minute, func() string {
		if got := f.workers(name); got != workers {
			return fmt.Sprintf("it has %d", got)
		}
		return ""
	})
}

// promoted waits until promote finds the environments before production healthy, and has made the tag.
func (f *fleet) promoted(tag string) {
	f.t.Helper()
	eventually(f.t, "promote makes "+tag, 4*time.Minute, func() string {
		if out, err := f.command("promote", "-o", "json").CombinedOutput(); err != nil {
			return string(out)
		}
		return ""
	})
	if got := f.git("tag", "--points-at", "HEAD~1"); got != tag {
		f.t.Errorf("the commit before the last is tagged %q, not %s", got, tag)
	}
}

// TestPromote lets production, and only production, go from tag to tag and back, cluster definitions included.
func TestPromote(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-promote")
	f.ok(initArgs()...)
	f.ok("channel", "add", "release", "--commit")
	f.ok("environment", "add", "production", "--channel", "release", "--commit")
	f.ok("cluster", "add", "try", "--environment", "dev", "--flavour", "in-memory", "--commit")
	f.ok("cluster", "add", "shop", "--environment", "production", "--flavour", "in-memory", "--commit")
	f.fails(3, []string{"environment dev", "--skip-health"}, "promote")
	f.available("try", 5*time.Minute)
	if f.workers("shop") >= 0 {
		t.Error("production is there before it was promoted to")
	}

	f.promoted("v0.1.0")
	f.available("shop", 5*time.Minute)
	f.fails(0, []string{"Nothing to do"}, "promote")

	// The same change for both: it reaches dev by itself, production by promotion, and goes from there alone.
	one := f.workers("try")
	for _, name := range []string{"try", "shop"} {
		f.ok("pool", "scale", name, "md-0", "--replicas", fmt.Sprint(one+1), "--commit")
	}
	f.has("try", one+1)
	if got := f.workers("shop"); got != one {
		t.Errorf("production has %d workers before it was promoted to", got)
	}
	waits := decode[promotions](t, f.ok("promote", "--status", "-o", "json").stdout)
	for _, e := range waits.Environments {
		if e.Name == "production" && (e.Tag != "v0.1.0" || e.Applied != e.Wanted || !e.Ready || len(e.Waiting) != 2) {
			t.Errorf("production: %+v", e)
		}
	}
	f.promoted("v0.1.1")
	f.has("shop", one+1)
	f.ok("promote", "--to", "v0.1.0")
	f.has("shop", one)
	if got := f.workers("try"); got != one+1 {
		t.Errorf("dev has %d workers after production went back", got)
	}
	f.ok("teardown", "--delete-clusters", "--yes")
}
