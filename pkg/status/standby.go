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

// Standby is the state of a management cluster that waits to take over from another one.
type Standby struct {
	// Of is the name of the other management cluster.
	Of string `json:"of"`
	// Fenced: no client can write the objects that its providers act on.
	Fenced bool `json:"fenced"`
	// Fetched is the revision of the fleet repo that it has last fetched.
	Fetched string `json:"fetched,omitempty"`
	// Snapshot that was last tried on it, when the snapshot was taken and tried, and the result; empty if none was tried.
	Snapshot string     `json:"snapshot,omitempty"`
	Taken    *time.Time `json:"taken,omitempty"`
	Tried    *time.Time `json:"tried,omitempty"`
	Works    bool       `json:"works"`
	Problems []string   `json:"problems"`

	running []string // its providers that run although they should be stopped
	trouble string   // why it does not fetch the fleet repo
}

const partStandby = "standby"

// standby reads the state of the standby whose journal is j.
func (c *collector) standby(ctx context.Context, j *handover.Journal) {
	resting, err := j.LookAtStandby(ctx, handover.Side{Name: c.report.Cluster.Name, Client: c.from.Client})
	if err != nil {
		c.missing(partStandby, err)
		return
	}
	s := &Standby{Of: resting.Of, Fenced: resting.Fenced, Problems: []string{}, running: resting.Running}
	if seen := resting.Seen; seen != nil {
		s.Snapshot, s.Tried, s.Works = seen.Snapshot, &seen.At, seen.Works
		if seen.Snapshot != "" {
			s.Taken = &seen.Taken
		}
		s.Problems = append(s.Problems, seen.Problems...)
	}
	if s.Fetched, s.trouble, err = flux.NewSystem(c.from.Client).Fetched(ctx); err != nil {
		c.missing(partStandby, err)
	}
	c.report.Standby = s
}

// judgeStandby adds the problems that would keep a standby from taking over. Its providers have to be stopped.
func (c *collector) judgeStandby() {
	r, s := c.report, c.report.Standby
	what := "standby " + r.Cluster.Name
	again := "`fleetctl init --management " + r.Cluster.Name + "` puts it to rest again"
	if !s.Fenced {
		r.blame(what, "it is not fenced: other clients could write the objects that its providers act on", again)
	}
	if len(s.running) > 0 {
		r.blame(what, "providers run that must be stopped on a standby: "+strings.Join(s.running, ", "), again)
	}
	if s.trouble != "" {
		r.blame(what, "it does not fetch the fleet repo: "+s.trouble,
			"`fleetctl init --management "+r.Cluster.Name+"` gives it the address and credentials")
	}
	refresh := "`fleetctl standby refresh " + r.Cluster.Name + "` tries the last one"
	if s.Snapshot == "" && len(s.Problems) == 0 {
		r.blame(what, "no snapshot of "+s.Of+" was tried on it yet", refresh)
	}
	for _, problem := range s.Problems {
		r.blame(what, problem, refresh)
	}
	if len(s.Problems) == 0 && s.Snapshot != "" && !s.Works {
		r.blame(what, "it could not take over with the snapshot "+s.Snapshot, refresh)
	}
	for _, w := range r.Clusters {
		r.blame(what, fmt.Sprintf("it has the Cluster %s/%s, but a standby manages no clusters", w.Namespace, w.Name),
			"find out who has made it, and delete it only if no other management cluster manages it")
	}
}

// line describes the standby in one line.
func (s *Standby) line(now time.Time) string {
	text := "standby of " + s.Of
	if s.Taken == nil {
		return text + ", no snapshot seen"
	}
	return fmt.Sprintf("%s, last snapshot seen %s old (tried %s ago)", text, plain.Duration(now.Sub(*s.Taken)),
		plain.Duration(now.Sub(*s.Tried)))
}

// atRest removes from the report what is stopped on purpose on a standby.
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
