// Package report tells a person what is being built and for how long, so that slow never looks like stuck.
package report

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// heartbeat is how often a step that is still running says so.
const heartbeat = 15 * time.Second

// Reporter writes one line when a step starts, one every 15 seconds while it runs, and one when it ends.
type Reporter struct {
	mu  sync.Mutex
	out io.Writer
}

// New reports to out.
func New(out io.Writer) *Reporter { return &Reporter{out: out} }

// Step is something under way.
type Step struct {
	r       *Reporter
	name    string
	started time.Time
	done    chan struct{}
}

// Start begins a step.
func (r *Reporter) Start(name string) *Step {
	s := &Step{r: r, name: name, started: time.Now(), done: make(chan struct{})}
	r.Say("%s …", name)
	go s.beat()
	return s
}

// End closes the step, which failed if err is not nil.
func (s *Step) End(err error) {
	close(s.done)
	if err != nil {
		s.r.Say("%s: failed after %s", s.name, s.elapsed())
		return
	}
	s.r.Say("%s: done in %s", s.name, s.elapsed())
}

// Say writes one line.
func (r *Reporter) Say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

func (s *Step) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			s.r.Say("%s: still at it after %s", s.name, s.elapsed())
		}
	}
}

func (s *Step) elapsed() time.Duration { return time.Since(s.started).Round(100 * time.Millisecond) }
