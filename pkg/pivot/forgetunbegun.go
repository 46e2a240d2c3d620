package pivot

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// forgetUnbegun is an abort at a target without a hand-over under way, whose source is gone. An earlier run was refused or cut off before
// the first journal, or an abort was cut off after it had removed the journal. The note beside the snapshots and the kept target are left.
// The target has answered, and must not have the work.
func (p *Move) forgetUnbegun(ctx context.Context, way *handedTarget, client *kube.Client, j *handover.Journal) (*MoveResult, error) {
	kept, err := p.keptAs(ctx, way, client)
	if err != nil {
		return nil, err
	}
	last, notes, err := p.history(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.refuseTaken(ctx, way.Name, client, j, last); err != nil {
		hint := diag.Hint(err)
		if len(notes) > 0 {
			hint += "; if it has not taken over, and never will: remove the snapshot " + notes[0].ID + ", which has the note"
		}
		return nil, diag.Wrap("", err, hint)
	}
	is := func(name string) bool {
		return name != "" && (management.SameCluster(way.Name, name) || kept != nil && kept.Name == name)
	}
	if err := forgetNotesTo(ctx, p.session, way.Name, is); err != nil {
		return nil, err
	}
	noted := 0
	for _, note := range notes {
		if is(note.HandedOver) {
			noted++
			continue
		}
		p.session.Deps.Report.Warn(fmt.Sprintf("%s beside the snapshots says that %s takes over from %s, and not that %s does, so it stays: "+
			"give a kubeconfig of %[2]s, in a file of that name (--to-kubeconfig %[5]s)",
			note.ID, note.HandedOver, p.session.Mgmt.Name, way.Name, diag.ShellWord(path.Base(note.HandedOver)+".kubeconfig")))
	}
	result := &MoveResult{FormatVersion: "1", Outcome: "nothing-to-do", Next: []string{}}
	if kept != nil || noted > 0 {
		result.Outcome, result.Report, result.Next = "undone", p.unbegun(way.Name), p.restoreNext()
	}
	return result, removeKept(p.session.Cluster)
}

// unbegun is the report of an abort that has found no journal.
func (p *Move) unbegun(target string) *handover.Report {
	return &handover.Report{
		Source: p.session.Mgmt.Name, Target: target, Phase: handover.PhaseAborting,
		Moved: map[string]int{}, Clusters: []string{}, Available: []string{}, Warnings: []string{},
	}
}

// keptAs returns the target that an earlier run has kept on this machine, or nil. It returns an error if way is another cluster: then
// nothing must be forgotten that leads to the kept one, which may have taken over.
func (p *Move) keptAs(ctx context.Context, way *handedTarget, client *kube.Client) (*handedTarget, error) {
	kept, err := readKept(p.session.Cluster)
	if err != nil || kept == nil {
		return nil, err
	}
	switch is, err := p.isKept(ctx, kept, client); {
	case err != nil:
		return nil, diag.Wrap("find out whether "+way.Name+" is "+kept.Name+", to which the work was to be handed over", err,
			"give a kubeconfig of "+kept.Name)
	case !is:
		return nil, diag.Errorf("give a kubeconfig of "+kept.Name,
			"%s is another cluster than %s, to which the work of %s was to be handed over, and has no journal of it",
			way.Name, kept.Name, p.session.Mgmt.Name)
	}
	return kept, nil
}

// history returns the newest snapshot in the place of the snapshots, nil for none, and the newer notes that a pivot has left. It skips what
// the keys of this machine do not open.
func (p *Move) history(ctx context.Context) (last *snapshot.Snapshot, notes []*snapshot.Snapshot, err error) {
	place, keys, err := openHistory(p.session)
	if err != nil || place == nil {
		return nil, nil, err
	}
	ids, err := place.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Backward(ids) {
		snap, err := p.mine(ctx, place, id, keys)
		switch {
		case err != nil:
			return nil, nil, err
		case snap == nil || snap.HandedOverUID != "":
		case snap.HandedOver == "":
			return snap, notes, nil
		default:
			notes = append(notes, snap)
		}
	}
	return nil, notes, nil
}

// mine reads a snapshot or a note. It returns nil for one of another fleet, and for one that the keys do not open.
func (p *Move) mine(ctx context.Context, place snapshot.Place, id string, keys secret.Keys) (*snapshot.Snapshot, error) {
	snap, err := snapshot.Find(ctx, place, id, keys)
	if snapshot.IsUnreadable(err) || err == nil && snap.Fleet != p.session.Identity() {
		return nil, nil //nolint:nilnil // it says nothing about this fleet
	}
	return snap, err
}

// refuseTaken returns an error if the target has taken over from this source, and its journal does not say so any more: it has taken part
// in another hand-over since, or somebody has deleted the journal. Then it has clusters of the last snapshot.
func (p *Move) refuseTaken(ctx context.Context, target string, client *kube.Client, j *handover.Journal, last *snapshot.Snapshot) error {
	source := p.session.Mgmt.Name
	if j != nil && p.isTargetOf(j.Before) && j.Before.Phase.Committed() {
		isBack := j.Role == handover.RoleSource && j.Whole() && j.Target.UID == j.Before.Source.UID
		if !isBack {
			return diag.Errorf("connect to "+target+" and ask it (`fleetctl connect`)", "%s has taken over from %s: this cannot be undone",
				target, source)
		}
	}
	if last == nil || len(last.Clusters) == 0 {
		return nil
	}
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		return err
	}
	there, err := management.Clusters(ctx, client)
	if err != nil {
		return diag.Wrap("find out which clusters "+target+" manages", err, diag.Hint(err))
	}
	for _, c := range there {
		if slices.Contains(last.Clusters, c.FullName()) && c.Owner.UID == uid && c.Owner.Fleet == p.session.Identity() {
			return diag.Errorf("connect to "+target+" and ask it (`fleetctl connect`)",
				"%s manages cluster %s, which the last snapshot of %s has: it may have taken over",
				target, c.FullName(), source)
		}
	}
	return nil
}
