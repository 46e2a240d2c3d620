package status

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// handOver looks whether a hand-over, a transfer, a detachment or a restore is under way. Until it is finished or undone, it explains what
// is suspended or paused. A journal that cannot be read is reported by standby, which reads it too.
func (c *collector) handOver(ctx context.Context) {
	if journal, err := handover.ReadJournal(ctx, c.from.Client); err == nil && journal.Active() {
		c.underWay = handover.Restorable("it", journal)
	}
}

// judgeHandOver adds a hand-over that is under way to the problems.
func (c *collector) judgeHandOver() {
	if c.underWay != nil {
		c.report.blame("management cluster "+c.report.Cluster.Name, c.underWay.Error(), diag.Hint(c.underWay))
	}
}

// resumeHint says what to do about a suspended object. During a hand-over, this is to finish or to undo the hand-over: an object that
// somebody resumes in the midst of it would change what is being handed over.
func (c *collector) resumeHint(o *Object) string {
	if c.underWay != nil && !o.SuspendedInGit {
		return diag.Hint(c.underWay)
	}
	return o.resumeHint()
}
