package ui

import (
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// patience is how long a request may wait before the Reporter tells of it.
const patience = 5 * time.Second

// Await shows that the command waits for something, if the wait is long and no step tells what the command does. Call answered when the
// wait has ended: it is no event of the result.
func (r *Reporter) Await(what func() string) (answered func()) {
	var shown *step
	timer := time.AfterFunc(patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		select {
		case <-r.stop: // the command shows its result, or asks a question
			return
		default:
		}
		if len(r.active) > 0 {
			return
		}
		shown = &step{reporter: r, name: "wait for " + what(), start: time.Now().Add(-patience), told: time.Now()}
		r.active = append(r.active, shown)
		if !r.live {
			r.line(paint(r.color, plain.Dim, "…"), shown.name, "")
		}
		r.redraw()
	})
	return func() {
		timer.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(r.active, shown); i >= 0 {
			r.active = slices.Delete(r.active, i, i+1)
			r.redraw()
		}
	}
}
