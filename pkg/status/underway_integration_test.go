//go:build integration

package status

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// Whoever finds a management cluster in the midst of a hand-over begins with status. It names the hand-over, and the commands that finish
// and undo it. After the commit, nothing undoes it; once it is finished, there is nothing to say.
func TestHandOverUnderWayIsShown(t *testing.T) {
	client, _ := kubetest.Start(t)
	if err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	journal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name}}
	if err := client.Create(t.Context(), journal); err != nil {
		t.Fatal(err)
	}
	const finish, undo = "`fleetctl cluster transfer shop`", "`fleetctl cluster transfer shop --abort`"
	for phase, hints := range map[handover.Phase][]string{
		handover.PhaseFenced: {finish, undo}, handover.PhaseCommitted: {finish}, handover.PhaseReleased: nil,
	} {
		journal.Data = map[string][]byte{"journal": []byte(`{"formatVersion":"1","id":"x","role":"source","phase":"` + string(phase) +
			`","source":{"name":"mgmt","uid":"u"},"target":{"name":"second","uid":"v"},"select":["shop/shop"]}`)}
		if err := client.Update(t.Context(), journal); err != nil {
			t.Fatal(err)
		}
		r := Collect(t.Context(), Sources{Cluster: Cluster{Name: "mgmt", State: "running"}, Client: client})
		i := slices.IndexFunc(r.Problems, func(p Problem) bool {
			return p.Object == "management cluster mgmt" && strings.Contains(p.Reason, "the transfer of shop/shop, from mgmt to second")
		})
		if i < 0 != (hints == nil) {
			t.Errorf("%s: %+v", phase, r.Problems)
			continue
		}
		for _, hint := range []string{finish, undo} {
			if i >= 0 && strings.Contains(r.Problems[i].Hint, hint) != slices.Contains(hints, hint) {
				t.Errorf("%s: %s in the hint %q", phase, hint, r.Problems[i].Hint)
			}
		}
	}
}

// What a hand-over has suspended is not resumed by hand, but by finishing or undoing the hand-over.
func TestNoHintToResumeInAHandOver(t *testing.T) {
	c := &collector{report: &Report{}, underWay: handover.Restorable("it", &handover.Journal{
		Role: handover.RoleSource, Phase: handover.PhaseFenced, Select: []string{"shop/shop"},
	})}
	if hint := c.resumeHint(&Object{Suspended: true}); strings.Contains(hint, "resume") || !strings.Contains(hint, "transfer shop --abort") {
		t.Errorf("got %q", hint)
	}
	source := &Object{Kind: "GitRepository", Namespace: "flux-system", Name: "next", Suspended: true, SuspendedInGit: true}
	if hint := c.resumeHint(source); hint != "`fleetctl channel resume next` resumes it" {
		t.Errorf("suspended in Git: %q", hint)
	}
}

// A journal that cannot be read is told as what it is, with the way out, at a management cluster that is no standby.
func TestDamagedJournalIsNoStandby(t *testing.T) {
	client, _ := kubetest.Start(t)
	if err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	journal := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": []byte("garbage")},
	}
	if err := client.Create(t.Context(), journal); err != nil {
		t.Fatal(err)
	}
	r := Collect(t.Context(), Sources{Cluster: Cluster{Name: "mgmt", State: "running"}, Client: client})
	var about []Problem
	for _, p := range r.Problems {
		if strings.Contains(p.Reason, "read the journal of the hand-over") {
			about = append(about, p)
		}
	}
	if len(about) != 1 || about[0].Object != "journal of hand-overs" ||
		!strings.Contains(about[0].Hint, "`kubectl delete secret fleetctl-handover") {
		t.Errorf("it says %+v", about)
	}
}
