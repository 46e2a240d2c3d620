// Package report tells a person what is being built and for how long, so that slow never looks like stuck.
package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"sync"
	"time"
)

// heartbeat is how often a step that is still running says so.
const heartbeat = 15 * time.Second

// Reporter writes one line when a step starts, one every 15 seconds while it runs, and one when it ends, each with the minutes that are
// left where that is known.
type Reporter struct {
	mu   sync.Mutex
	out  io.Writer
	work work
}

// work is what is known of the time that steps take.
type work struct {
	ahead       map[string]time.Duration // processor time of steps that have not ended, by name
	cost, spent time.Duration            // of those that have ended: what was expected, and what the clock said
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

// Expect tells how much processor time the steps ahead are known to take. From then on it is said how many minutes are left.
func (r *Reporter) Expect(steps map[string]time.Duration) {
	r.mu.Lock()
	r.work = work{ahead: maps.Clone(steps)}
	left := r.work.left("", 0)
	r.mu.Unlock()
	if left != "" {
		r.Say("%d programs to build%s", len(steps), left)
	}
}

// left says how long the steps ahead will take, while the one called name has run for elapsed. Steps that have ended say how fast this
// machine is, and how much of their work an earlier build had done; before one has, all processors are taken to be free.
func (w *work) left(name string, elapsed time.Duration) string {
	pace := 1 / float64(runtime.NumCPU())
	if w.cost > 0 {
		pace = float64(w.spent) / float64(w.cost)
	}
	var rest float64
	for step, cost := range w.ahead {
		expected := float64(cost) * pace
		if step == name {
			expected = max(expected-float64(elapsed), expected/10)
		}
		rest += expected
	}
	switch minutes := int(math.Ceil(rest / float64(time.Minute))); {
	case minutes < 1:
		return ""
	case minutes == 1:
		return ", about a minute left"
	default:
		return fmt.Sprintf(", about %d minutes left", minutes)
	}
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
	s.r.mu.Lock()
	if cost, ok := s.r.work.ahead[s.name]; ok {
		delete(s.r.work.ahead, s.name)
		s.r.work.cost += cost
		s.r.work.spent += time.Since(s.started)
	}
	left := s.r.work.left("", 0)
	s.r.mu.Unlock()
	s.r.Say("%s: done in %s%s", s.name, s.elapsed(), left)
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
			s.r.mu.Lock()
			left := s.r.work.left(s.name, time.Since(s.started))
			s.r.mu.Unlock()
			s.r.Say("%s: still at it after %s%s", s.name, s.elapsed(), left)
		}
	}
}

func (s *Step) elapsed() time.Duration { return time.Since(s.started).Round(100 * time.Millisecond) }
