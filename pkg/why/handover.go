package why

import (
	"context"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// journal reads the journal of the last hand-over, and keeps it if it is about this cluster.
func (l *look) journal(ctx context.Context) error {
	j, err := handover.ReadJournal(ctx, l.from.Client)
	if err != nil || j == nil || j.IsStandby() {
		return err
	}
	if l.concerns(j) {
		l.handedOver = j
	}
	return nil
}

// concerns tells whether a hand-over is about this cluster. One of all clusters is, while it is under way.
func (l *look) concerns(j *handover.Journal) bool {
	is := func(full string) bool { return full == l.key.String() || full == l.from.Cluster }
	switch {
	case slices.ContainsFunc(slices.Concat(j.Select, j.Clusters), is), j.IsTransferOf(l.from.Cluster):
		return true
	}
	return j.Whole() && j.Active()
}

// isGone tells whether this management cluster has handed the cluster over, and has it no more.
func (l *look) isGone() bool {
	j := l.handedOver
	return j != nil && !j.Active() && j.Role == handover.RoleSource && !j.Detach && l.cluster == nil
}

// goneText says which management cluster has the cluster now.
func (l *look) goneText() string {
	return "management cluster " + l.handedOver.Target.Name + " manages it now, and " + l.from.Management + " has handed it over"
}

// askThere is the command that looks at the cluster where it is now.
func (l *look) askThere() string {
	return "ask there: `" + diag.ShellCommand("fleetctl", "why", l.from.Cluster, "--management", l.handedOver.Target.Name) + "`"
}

// handOverCauses has the cause that a hand-over of the cluster is under way, or that the cluster is elsewhere. It comes before all others,
// because a hand-over pauses and suspends what the others are about.
func (l *look) handOverCauses() []Cause {
	cause := func(reason string) []Cause {
		c := Cause{Stage: StageCluster, Object: "Cluster " + l.key.String(), Reason: reason, Words: []string{}}
		c.Remedy = remedyFor(&Link{Stage: StageCluster}, Trouble{Reason: reason}, nil)
		return []Cause{c}
	}
	switch {
	case l.handedOver.Active():
		err := handover.Restorable("it", l.handedOver)
		return cause("a hand-over is under way: " + err.Error() + "; " + diag.Hint(err))
	case l.isGone():
		return cause(l.goneText() + "; " + l.askThere())
	}
	return nil
}
