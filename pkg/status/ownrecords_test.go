package status

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// told is the report on one Available cluster with this record of its own.
func told(t *testing.T, own *handover.OwnRecord, change func(*collector, *Fleet)) (*Report, string) {
	t.Helper()
	c := &collector{
		from: Sources{FleetID: "f"}, uid: "u1",
		report: &Report{Ready: true, Cluster: Cluster{Name: "first", State: stateRunning}, Flux: Flux{Installed: true}},
	}
	w := workload(capi.Cluster{
		Namespace: "shop", Name: "shop", Available: true,
		Owner: capi.Owner{Fleet: "f", ManagementCluster: "first", UID: "u1", Epoch: 2},
	})
	w.Ready = true
	if change != nil {
		change(c, &w)
	}
	w.claim(c.uid)
	if own != nil {
		w.says(*own, c.uid, c.from.FleetID, c.report.Cluster.Name)
	}
	c.report.Clusters = []Fleet{w}
	c.judgeOwnRecords()
	c.judgeOwners()
	var b bytes.Buffer
	if err := Tree(&b, c.report, Style{}); err != nil {
		t.Fatal(err)
	}
	return c.report, b.String()
}

func secondOwns(change func(*handover.OwnRecord)) *handover.OwnRecord {
	o := &handover.OwnRecord{Owner: capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}}
	if change != nil {
		change(o)
	}
	return o
}

// Two restores of one snapshot count the same hand-overs, and each side believes that it is the owner. The record in the workload cluster
// shows that there are two.
func TestOwnRecordShowsASecondOwner(t *testing.T) {
	r, text := told(t, secondOwns(nil), nil)
	if r.Ready || len(r.Problems) != 1 || !r.Clusters[0].TwoOwners || r.Clusters[0].Owner != "first" {
		t.Fatalf("got %+v", r)
	}
	p := r.Problems[0]
	if p.Object != "Cluster shop/shop" || !strings.HasPrefix(p.Reason, "TWO OWNERS: its own record says that management cluster second ") ||
		!strings.Contains(p.Hint, "`fleetctl cluster detach shop/shop`") || !strings.Contains(p.Hint, "kube-system/fleetctl-owner") {
		t.Errorf("got %+v", p)
	}
	if !strings.Contains(text, "✗ shop/shop") || !strings.Contains(text, "TWO OWNERS: second and this one") {
		t.Errorf("got\n%s", text)
	}
}

// Both sides of two restores of one snapshot have the name of the management cluster that was lost.
func TestOwnRecordShowsANamesake(t *testing.T) {
	r, text := told(t, secondOwns(func(o *handover.OwnRecord) { o.ManagementCluster = "first" }), nil)
	const says = "its own record says that another management cluster that is called first, too, has taken it over"
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Reason, says) ||
		!strings.Contains(text, "TWO OWNERS: another first and this one") {
		t.Errorf("got %+v\n%s", r.Problems, text)
	}
}

// What is no proof of a second owner in this fleet is shown, and is no problem.
func TestOwnRecordThatIsNoSecondOwner(t *testing.T) {
	for name, c := range map[string]struct {
		own    *handover.OwnRecord
		change func(*collector, *Fleet)
		shows  string // "": nothing
	}{
		"none":    {},
		"mine":    {own: secondOwns(func(o *handover.OwnRecord) { o.UID, o.ManagementCluster = "u1", "first" })},
		"older":   {own: secondOwns(func(o *handover.OwnRecord) { o.Epoch = 1 })},
		"damaged": {own: &handover.OwnRecord{Damaged: true}, shows: "its own record: damaged"},
		"another fleet": {
			own:   secondOwns(func(o *handover.OwnRecord) { o.Fleet = "0123456789" }),
			shows: "its own record: owner second of another fleet (01234567…)",
		},
		"detached": {
			own:   secondOwns(func(o *handover.OwnRecord) { o.ManagementCluster, o.UID, o.Epoch = "", "", 3 }),
			shows: "its own record: detached",
		},
		"no fleet is known": {
			own: secondOwns(nil), change: func(c *collector, _ *Fleet) { c.from.FleetID = "" }, shows: "its own record: owner second",
		},
		"paused": {
			own: secondOwns(nil), change: func(_ *collector, w *Fleet) { w.Paused = true }, shows: "its own record: owner second",
		},
		"a copy": {own: secondOwns(nil), change: func(_ *collector, w *Fleet) { w.CopyOf = "second" }},
		"taken over from there": {own: secondOwns(nil), change: func(c *collector, _ *Fleet) {
			c.last = &handover.Journal{
				Role: handover.RoleTarget, Phase: handover.PhaseReleased, Source: handover.Party{Name: "second", UID: "u2"},
				Clusters: []string{"shop/shop"},
			}
		}},
	} {
		r, text := told(t, c.own, c.change)
		if !r.Ready || len(r.Problems) > 0 || r.Clusters[0].TwoOwners {
			t.Errorf("%s: got %+v", name, r.Problems)
		}
		if shows := strings.Contains(text, "its own record"); shows != (c.shows != "") || !strings.Contains(text, c.shows) {
			t.Errorf("%s: got\n%s", name, text)
		}
	}
}

// The mark of another owner on the Cluster itself is told as before, and once.
func TestOwnRecordThatAgreesIsToldOnce(t *testing.T) {
	r, text := told(t, secondOwns(nil), func(_ *collector, w *Fleet) {
		w.record.UID, w.record.ManagementCluster, w.Owner = "u2", "second", "second"
	})
	if len(r.Problems) != 1 || r.Problems[0].Reason != TwoOwnersText(r.Clusters[0].record) || strings.Contains(text, "its own record") {
		t.Errorf("got %+v\n%s", r.Problems, text)
	}
}

// Every administrator of a workload cluster can write its record. Their text neither fills the screen nor steers the terminal.
func TestOwnRecordIsTamed(t *testing.T) {
	evil := "\x1b[2Jsecond\nReady\u202e" + strings.Repeat("x", 1<<20)
	for _, own := range []*handover.OwnRecord{
		secondOwns(func(o *handover.OwnRecord) { o.ManagementCluster = evil }),
		secondOwns(func(o *handover.OwnRecord) { o.ManagementCluster, o.Fleet = evil, evil }),
	} {
		r, text := told(t, own, nil)
		for _, p := range r.Problems {
			text += p.Reason + p.Hint
		}
		text += r.Clusters[0].OwnRecord.ManagementCluster + r.Clusters[0].OwnRecord.Fleet
		if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nReady") || len(text) > 2000 {
			t.Errorf("got %.3000q", text)
		}
	}
}

// Clusters that were not asked, or that did not answer, are counted in one line. They are no problem.
func TestClustersWithoutAnswerAreNoProblem(t *testing.T) {
	r, text := told(t, nil, func(c *collector, _ *Fleet) { c.report.OwnRecords = OwnRecords{Answered: 3, Silent: 2, NotAsked: 4} })
	const line = "workload clusters (asked for their own record of their owner: 3 of 9 answered, 2 did not, 4 were not asked)"
	if !r.Ready || strings.Count(text, line) != 1 {
		t.Errorf("got\n%s", text)
	}
	_, text = told(t, nil, func(c *collector, _ *Fleet) { c.report.OwnRecords = OwnRecords{Answered: 3} })
	if strings.Contains(text, "record") {
		t.Errorf("got\n%s", text)
	}
	_, text = told(t, nil, func(c *collector, w *Fleet) {
		c.report.OwnRecords, w.Owner, w.record = OwnRecords{Silent: 1}, c.report.Cluster.Name, capi.Owner{}
	})
	if strings.Contains(text, "record") {
		t.Errorf("no cluster has changed hands: got\n%s", text)
	}
	_, text = told(t, nil, func(c *collector, _ *Fleet) { c.report.OwnRecords = OwnRecords{NotAsked: 4, Forbidden: true} })
	if !strings.Contains(text, "0 of 4 answered, 4 were not asked, because your user may not read their kubeconfigs)") {
		t.Errorf("got\n%s", text)
	}
}
