//go:build e2e

package handover

import (
	"sync"
	"sync/atomic"
)

// write is a request that changes something, as a run sends it.
type write struct {
	number int // counted over both sides, from 1
	side   string
	method string
	path   string
}

// deed is what a fault does to a write.
type deed int

const (
	pass       deed = iota
	killBefore      // the program is killed and the write is not passed on
	killAfter       // the write is passed on, and the program killed before it has the answer
	cutBefore       // the connection is cut instead
	cutAfter        // the connection is cut instead of the answer
	hold            // nothing happens until the program gives up
	answer409       // the API server's own words, of a write that it did not take
	answer429       //
	answer500       //
	answer503       //
)

var deedNames = []string{
	"pass", "kill before", "kill after", "cut before", "cut after", "hold", "answer 409", "answer 429", "answer 500", "answer 503",
}

func (d deed) String() string { return deedNames[d] }

// run is one run of the program, over both sides.
type run struct {
	judge func(write) deed // nil passes all
	kill  func()
	full  func()                 // the disk of the program's machine takes nothing more from now on
	away  func(side string) bool // whether a side answers nothing now; nil: never

	// expired tells whether a side takes the program's token no longer; nil: never.
	expired func(side string) bool

	mu     sync.Mutex
	writes []write
	dead   bool
	struck []write // what was not simply passed on
	reads  atomic.Int64
	inside sync.WaitGroup // the writes under way
}

// note counts a write and says what to do with it. What a program that is killed had still on the way counts no more.
func (r *run) note(side, method, path string) (does deed, counted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return cutBefore, false
	}
	w := write{number: len(r.writes) + 1, side: side, method: method, path: path}
	r.writes = append(r.writes, w)
	if r.judge != nil {
		does = r.judge(w)
	}
	if does != pass {
		r.struck = append(r.struck, w)
	}
	r.dead = does == killBefore || does == killAfter
	r.inside.Add(1)
	return does, true
}

// count of the writes so far.
func (r *run) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}
