//go:build integration

package pivot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// A pivot that the hand-over refuses before its first journal leaves nothing that says that the target takes over. If a side has a journal
// of it by then, another machine's, or if the target cannot be asked, everything stays.
func TestRefusedPivotLeavesNothing(t *testing.T) {
	ctx, e, s := takenFleet(t)
	commit := noting(t, e, s)
	there, kubeconfig := kubetest.Start(t)
	kubetest.ClusterAPI(t, there, "clusters", "machines")
	for _, client := range []*kube.Client{e.Client, there} { // so the target refuses it
		for _, namespace := range []string{"shop", handover.JournalKey.Namespace} {
			made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			if err := client.Create(ctx, made); err != nil && client == there {
				t.Fatal(err)
			}
		}
		if err := client.Create(ctx, standingtest.NewWorkload("shop", "shop")); err != nil {
			t.Fatal(err)
		}
	}
	const ours = `{"formatVersion":"1","id":"a",OF"role":"ROLE","phase":"PHASE","fleet":"FLEET",` +
		`"source":{"name":"mgmt","uid":"SOURCE"},"target":{"name":"next","uid":"TARGET"}}`
	way := &handedTarget{Name: "next", Kubeconfig: kubeconfig, UID: clusterUID(ctx, t, there)}
	for name, c := range map[string]struct {
		at              *kube.Client // that has a journal, nil for none
		role, phase, of string
		stays           bool
	}{
		"no journal":                        {},
		"an earlier transfer to it":         {e.Client, "source", "released", `"select":["web/web"],`, false},
		"another machine has finished it":   {e.Client, "source", "released", "", true},
		"another machine has begun it":      {e.Client, "source", "planned", "", true},
		"only the target's journal is left": {there, "target", "committed", "", true},
		"the target had a transfer from it": {there, "target", "released", `"select":["web/web"],`, false},
		"the target was restored":           {there, "target", "released", `"snapshot":"x",`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s.Fleet.Spec.Snapshots.To = t.TempDir()
			place, err := s.Place()
			if err != nil {
				t.Fatal(err)
			}
			p := NewMove(converge.NewRun(s), "next")
			if err := p.keepTarget(ctx, e.Client, way); err != nil {
				t.Fatal(err)
			}
			forgetJournal(t, e.Client)
			forgetJournal(t, there)
			if c.at != nil {
				keepJournal(ctx, t, c.at, strings.NewReplacer("OF", c.of, "ROLE", c.role, "PHASE", c.phase, "FLEET", s.Identity(),
					"SOURCE", clusterUID(ctx, t, e.Client), "TARGET", way.UID).Replace(ours))
			}
			target := &Target{handedTarget: way, client: there}
			if c.at == nil {
				_, err := p.handOver(ctx, e.Client, target, commit, func(string) {})
				if err == nil || !strings.Contains(err.Error(), "already exists") {
					t.Fatalf("the target takes a Cluster that it has: %v", err)
				}
			} else {
				if err := markHandedOver(ctx, commit, way.Name, false); err != nil {
					t.Fatal(err)
				}
				p.takeBackUnlessBegun(ctx, e.Client, target, commit)
			}
			newest, err := snapshot.Find(ctx, place, "", commit.Access.Keys)
			if noted := err == nil && newest.HandedOver == "next"; noted != c.stays {
				t.Errorf("a note beside the snapshots: %t, want %t (%v)", noted, c.stays, err)
			}
			_, err = e.Client.SecretValue(ctx, targetSecret, "target")
			if kept := !kube.IsAbsent(err); kept != c.stays {
				t.Errorf("the source has the target: %t, want %t (%v)", kept, c.stays, err)
			}
			if kept, err := readKept(s.Cluster); err != nil || (kept != nil) != c.stays {
				t.Errorf("this machine has the target: %t, %v", kept != nil, err)
			}
		})
	}
}

// A pivot was cut off before its first journal, and then the source was lost. An abort at the target, which has no journal, forgets the
// note, so a snapshot can be restored. It forgets nothing if that cluster has the work, or is another one than the one that is noted.
func TestAbortWithoutAJournalWhoseSourceIsLost(t *testing.T) {
	l := newLostSource(t)
	ctx := t.Context()
	kubetest.ClusterAPI(t, l.client, "clusters", "machines")
	uid := clusterUID(ctx, t, l.client)
	if err := l.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	l.o.ToKubeconfig = as(t, l.o.ToKubeconfig, "platform")
	taken := handover.Journal{
		FormatVersion: "1", Role: handover.RoleTarget, Phase: handover.PhaseReleased, Fleet: lostFleet,
		Source: handover.Party{Name: "mgmt", UID: "lost"},
	}
	back := taken // its source is the target of the journal that follows it
	back.Source.UID = uid
	another := handover.Journal{
		Role: handover.RoleTarget, Phase: handover.PhaseReleased, Fleet: lostFleet, Source: handover.Party{Name: "other"},
		Select: []string{"a/a"},
	}
	for name, c := range map[string]struct {
		noted   string
		journal *handover.Journal
		owned   bool   // the target manages a cluster of the snapshot
		kept    string // the UID of the cluster that this machine has kept
		says    string
		stays   bool // nothing is forgotten, and no error says so
	}{
		"by its name":          {noted: "platform"},
		"by its full name":     {noted: "team-a/platform"},
		"as this machine knew": {noted: "mine", kept: uid},
		"another one is kept":  {noted: "platform", kept: "another", says: "is another cluster than mine"},
		"another one is noted": {noted: "second", stays: true},
		"another hand-over":    {noted: "platform", journal: &another},
		"it took over before another hand-over": {
			noted: "platform", says: "has taken over from mgmt", journal: func() *handover.Journal {
				j := another
				j.Before = &taken
				return &j
			}(),
		},
		"it has handed the work on": {
			noted: "platform", says: "has taken over from mgmt", journal: &handover.Journal{
				Role: handover.RoleSource, Phase: handover.PhaseReleased, Fleet: lostFleet, Source: handover.Party{Name: "mgmt"},
				Before: &taken,
			},
		},
		"it has handed the work back": {
			noted: "platform", journal: &handover.Journal{
				Role: handover.RoleSource, Phase: handover.PhaseReleased, Fleet: lostFleet, Source: handover.Party{Name: "mgmt"},
				Before: &back,
			},
		},
		"it manages a cluster of the snapshot": {noted: "platform", owned: true, says: "manages cluster shop/shop"},
	} {
		t.Run(name, func(t *testing.T) {
			deps, heard := l.deps, &spoken{Reporter: progress.Discard}
			deps.Report = heard
			forgetHistory(t, l)
			l.history(t, c.noted)
			if c.journal != nil {
				l.journal(t, *c.journal)
			}
			if c.kept != "" {
				content := `{"name":"mine","kubeconfig":"YQ==","uid":"` + c.kept + `"}`
				if err := deps.Store.Cluster("mgmt").Write(targetFile, []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
			if c.owned {
				cluster := standingtest.NewWorkload("shop", "shop")
				cluster.Annotations = map[string]string{"fleetctl.dev/owner": capi.Owner{Fleet: lostFleet, UID: uid, Epoch: 1}.String()}
				if err := l.client.Create(ctx, cluster); err != nil {
					t.Fatal(err)
				}
			}
			result, err := Pivot(ctx, deps, l.o)
			left := 2
			switch {
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) || diag.Hint(err) == "" {
					t.Errorf("got %+v, %v (%s)", result, err, diag.Hint(err))
				}
			case c.stays:
				if err != nil || result.Outcome != "nothing-to-do" || !strings.Contains(heard.warnings, c.noted+".kubeconfig") {
					t.Errorf("got %+v, %v; it says %s", result, err, heard.warnings)
				}
			default:
				left = 1
				if err != nil || result.Outcome != "undone" || len(result.Next) == 0 {
					t.Errorf("got %+v, %v (%s)", result, err, diag.Hint(err))
				}
			}
			if n := l.notes(ctx, t); n != left {
				t.Errorf("the place of the snapshots has %d, want %d", n, left)
			}
			if kept, err := readKept(deps.Store.Cluster("mgmt")); err != nil || (kept != nil) != (c.kept != "" && c.says != "") {
				t.Errorf("this machine has the target: %t, %v", kept != nil, err)
			}
		})
	}
}

// as copies a file to another name.
func as(t *testing.T, file, name string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), name+".kubeconfig")
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// forgetHistory removes everything that an earlier case has left.
func forgetHistory(t *testing.T, l *lostSource) {
	t.Helper()
	ctx := t.Context()
	ids, err := l.folder.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := l.folder.Remove(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(l.deps.Store.Cluster("mgmt").Path(targetFile)); err != nil {
		t.Fatal(err)
	}
	forgetJournal(t, l.client)
	if err := l.client.WithWatch.Delete(ctx, standingtest.NewWorkload("shop", "shop")); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
}

// forgetJournal removes the journal of a cluster.
func forgetJournal(t *testing.T, client *kube.Client) {
	t.Helper()
	journal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
	if err := client.WithWatch.Delete(t.Context(), journal); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
}
