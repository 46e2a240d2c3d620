package confine

import (
	"sync"
	"time"
)

// stopwatch measures for how long a task works: it stands while the task waits for an answer of who started it.
type stopwatch struct {
	mu      sync.Mutex
	began   time.Time
	waited  time.Duration
	waiting int // answers that are waited for
	since   time.Time
}

func newStopwatch() *stopwatch { return &stopwatch{began: time.Now()} }

// wait says that so many more answers are waited for; below 0 that they have come.
func (s *stopwatch) wait(answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.waiting
	s.waiting += answers
	switch {
	case before == 0 && s.waiting > 0:
		s.since = time.Now()
	case before > 0 && s.waiting == 0:
		s.waited += time.Since(s.since)
	}
}

// worked is how long it was until now.
func (s *stopwatch) worked() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 {
		return s.since.Sub(s.began) - s.waited
	}
	return time.Since(s.began) - s.waited
}
