package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Standby is what there is to say of a management cluster that waits to take over from another one.
type Standby struct {
	// Of is the other one.
	Of string `json:"of"`
	// Fenced: nobody can write what its providers act on.
	Fenced bool `json:"fenced"`
	// Fetched is what it has fetched of the fleet repo last.
	Fetched string `json:"fetched,omitempty"`
	// Snapshot that was tried on it last, when that was taken and tried, and what was found; empty where none was.
	Snapshot string     `json:"snapshot,omitempty"`
	Taken    *time.Time `json:"taken,omitempty"`
	Tried    *time.Time `json:"tried,omitempty"`
	Works    bool       `json:"works"`
	Problems []string   `json:"problems"`

	running []string // its providers that somebody has started
	trouble string   // why it does not fetch the fleet repo
}

const partStandby = "standby"

// standby reads how a standby is, where the management cluster is one.
func (c *collector) standby(ctx context.Context) {
	resting, err := handover.LookAtStandby(ctx, handover.Side{Name: c.report.Cluster.Name, Client: c.from.Client})
	if err != nil {
		c.missing(partStandby, err)
		return
	}
	if resting == nil {
		return
	}
	s := &Standby{Of: resting.Of, Fenced: resting.Fenced, Problems: []string{}, running: resting.Running}
	if seen := resting.Seen; seen != nil {
		s.Snapshot, s.Taken, s.Tried, s.Works = seen.Snapshot, &seen.Taken, &seen.At, seen.Works
		s.Problems = append(s.Problems, seen.Problems...)
	}
	if s.Fetched, s.trouble, err = flux.NewSystem(c.from.Client).Fetched(ctx); err != nil {
		c.missing(partStandby, err)
	}
	c.report.Standby = s
}

// judgeStandby says what would keep a standby from taking over. That its providers are stopped is as it should be.
func (c *collector) judgeStandby() {
	r, s := c.report, c.report.Standby
	what := "standby " + r.Cluster.Name
	again := "`fleetctl init --management " + r.Cluster.Name + "` puts it to rest again"
	if !s.Fenced {
		r.blame(what, "it is not fenced: others could write what its providers act on", again)
	}
	if len(s.running) > 0 {
		r.blame(what, "somebody has started what is to be stopped: "+strings.Join(s.running, ", "), again)
	}
	if s.trouble != "" {
		r.blame(what, "it does not fetch the fleet repo: "+s.trouble, "`fleetctl init --management "+r.Cluster.Name+"` gives it the way there")
	}
	refresh := "`fleetctl standby refresh " + r.Cluster.Name + "` tries the last one"
	if s.Snapshot == "" {
		r.blame(what, "no snapshot of "+s.Of+" was tried on it yet", refresh)
	}
	for _, problem := range s.Problems {
		r.blame(what, problem, refresh)
	}
	if len(s.Problems) == 0 && s.Snapshot != "" && !s.Works {
		r.blame(what, "it could not take over with the snapshot "+s.Snapshot, refresh)
	}
	for _, w := range r.Clusters {
		r.blame(what, fmt.Sprintf("Cluster %s/%s is there, and it manages none", w.Namespace, w.Name), "find out who has made it, and delete it only if nobody else manages it")
	}
}

// line is what a standby says of itself in one line.
func (s *Standby) line(now time.Time) string {
	text := "standby of " + s.Of
	if s.Taken == nil {
		return text + ", no snapshot seen"
	}
	return fmt.Sprintf("%s, last snapshot seen %s old (tried %s ago)", text, plain.Duration(now.Sub(*s.Taken)), plain.Duration(now.Sub(*s.Tried)))
}

// atRest leaves out of a report what is stopped on purpose.
func (c *collector) atRest() {
	r := c.report
	for i := range r.Providers {
		r.Providers[i].Ready, r.Providers[i].Reason = true, "stopped"
	}
	for i := range r.Flux.Controllers {
		if d := &r.Flux.Controllers[i]; d.Name != handover.Fetcher {
			d.Ready, d.Reason = true, "stopped"
		}
	}
}
