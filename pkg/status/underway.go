package status

import (
	"context"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// handOver looks whether a hand-over, a transfer, a detachment or a restore is under way. Until it is finished or undone, it explains what
// is suspended or paused. A standby has the same journal.
func (c *collector) handOver(ctx context.Context) {
	journal, err := handover.ReadJournal(ctx, c.from.Client)
	c.last = journal
	switch {
	case err != nil:
		c.missing(partJournal, err)
	case journal.IsStandby():
		c.standby(ctx, journal)
	case journal.Active():
		c.underWay, c.journal = handover.Restorable("it", journal), journal
	}
}

const partJournal = "journal of hand-overs"

// judgeCopies marks the workload clusters that are only copies: another management cluster has them, and nobody acts on them here. The
// hand-over that is under way makes or removes them.
func (c *collector) judgeCopies() {
	j := c.journal
	if j == nil || j.Detach || j.Around {
		return
	}
	of := ""
	switch committed := j.Phase.Committed(); {
	case j.Role == handover.RoleTarget && !committed:
		of = j.Source.Name
	case j.Role == handover.RoleSource && committed:
		of = j.Target.Name
	}
	for i := range c.report.Clusters {
		if w := &c.report.Clusters[i]; slices.Contains(j.Clusters, w.Namespace+"/"+w.Name) {
			w.CopyOf = of
		}
	}
}

// judgeHandOver adds a hand-over that is under way to the problems.
func (c *collector) judgeHandOver() {
	if c.underWay != nil {
		c.report.blame("management cluster "+c.report.Cluster.Name, c.underWay.Error(), diag.Hint(c.underWay))
	}
}
