package confine

import "time"

// watchTime kills a process that works on one thing for too long, or does not get ready.
func (a *attempt) watchTime(child *process, ready, done <-chan struct{}) {
	starting := time.NewTimer(startTime)
	defer starting.Stop()
	select {
	case <-done:
		return
	case <-starting.C:
		child.kill()
		return
	case <-ready:
	}
	a.heard(0)
	tick := time.NewTicker(min(a.start.Limits.Time/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			if a.overdue(now) {
				child.kill()
				return
			}
		}
	}
}

// silence is how many times as long as on one thing a process may work on what it does not name: to read a fleet and to put the result
// together takes longer the larger the fleet is.
const silence = 5

func (a *attempt) overdue(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.active {
		if now.Sub(one.since) > a.start.Limits.Time {
			a.late = one
			return true
		}
	}
	a.silent = len(a.active) == 0 && a.calls == 0 && now.Sub(a.since) > silence*a.start.Limits.Time
	a.beyond = a.watch.worked() > a.start.Left+silence*a.start.Limits.Time // it works on, though it is refused all that it names
	return a.silent || a.beyond
}

// heard notes that the process is getting on, and how many more answers it waits for.
func (a *attempt) heard(calls int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = time.Now()
	a.calls += calls
	a.watch.wait(calls)
}

func (a *attempt) tooLate() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.late != nil || a.silent || a.beyond
}
