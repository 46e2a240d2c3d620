package confine

import (
	"sync"
	"time"
)

// stopwatch measures how long a task works. It stands still while the task waits for an answer of the process that has started it.
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

// worked returns how long the task has worked.
func (s *stopwatch) worked() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 {
		return s.since.Sub(s.began) - s.waited
	}
	return time.Since(s.began) - s.waited
}
