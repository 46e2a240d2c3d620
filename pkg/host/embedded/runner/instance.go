package runner

import (
	"context"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// instance is the process of a plan, with its supervisor and probes.
type instance struct {
	plan       *plan
	generation int64 // of the Deployment that it was planned from
	dial       dialFunc
	supervisor *process.Supervisor
	// changed is called when the instance's view has changed. It does not block.
	changed func()

	mu         sync.Mutex
	status     process.Status
	ready      bool
	readySince time.Time
	reason     string // why it is not ready, or was ended
	told       string // the reason of the last call of changed
	toldAt     time.Time
	stopProbes context.CancelFunc
	answered   chan struct{} // closed when it was ready, or ended, for the first time
}

// start starts the process of a plan. changed must not block.
func start(p *plan, generation int64, dial dialFunc, opts process.SupervisorOptions, changed func()) *instance {
	i := &instance{plan: p, generation: generation, dial: dial, changed: changed, answered: make(chan struct{}), stopProbes: func() {}}
	opts.OnChange = i.onChange
	i.mu.Lock() // the supervisor may call onChange before the field is set
	i.supervisor = process.Supervise(p.spec, opts)
	i.mu.Unlock()
	return i
}

// onChange follows the process. It starts new probes for each new process.
func (i *instance) onChange(status process.Status) {
	i.mu.Lock()
	old := i.status
	i.status = status
	if status.Identity != old.Identity {
		i.stopProbes()
		i.ready = false
		if status.Identity != (process.Identity{}) {
			i.startProbes(status.Identity)
		} else {
			i.answer()
		}
	}
	i.mu.Unlock()
	i.changed()
}

// startProbes is called with mu held.
func (i *instance) startProbes(identity process.Identity) {
	ctx, cancel := context.WithCancel(context.Background())
	i.stopProbes = cancel
	i.reason = ""
	probes := newProber(i.dial, i.plan)
	probes.ready = func(ok bool, reason string) { i.setReady(ctx, ok, reason) }
	probes.unhealthy = func(reason string) { i.end(ctx, identity, reason) }
	go probes.run(ctx)
}

// answer is called with mu held.
func (i *instance) answer() {
	select {
	case <-i.answered:
	default:
		close(i.answered)
	}
}

func (i *instance) setReady(ctx context.Context, ok bool, reason string) {
	i.mu.Lock()
	if ctx.Err() != nil { // the probed process has ended
		i.mu.Unlock()
		return
	}
	// A probe runs often, and its reason may differ each time. Report another reason at most once a second.
	changed := ok != i.ready || (!ok && reason != i.told && time.Since(i.toldAt) > time.Second)
	if changed {
		i.told, i.toldAt = reason, time.Now()
	}
	if ok && !i.ready {
		i.readySince = time.Now()
		i.answer()
	}
	i.ready, i.reason = ok, reason
	i.mu.Unlock()
	if changed {
		i.changed()
	}
}

// end stops a process that failed its probes. The supervisor starts another one.
func (i *instance) end(ctx context.Context, identity process.Identity, reason string) {
	i.mu.Lock()
	current := ctx.Err() == nil && i.status.Identity == identity
	if current {
		i.reason, i.ready = reason, false
	}
	supervisor := i.supervisor
	i.mu.Unlock()
	if !current {
		return
	}
	i.changed()
	stopCtx, cancel := context.WithTimeout(context.Background(), i.plan.grace+stopMargin)
	defer cancel()
	_ = supervisor.Restart(stopCtx, i.plan.grace) //nolint:contextcheck // ctx ends with the process
}

// stopMargin is how long the end of a killed process may take after the grace.
const stopMargin = 10 * time.Second

// stop ends the process for good.
func (i *instance) stop(ctx context.Context, longest time.Duration) error {
	i.mu.Lock()
	i.stopProbes()
	supervisor := i.supervisor
	i.mu.Unlock()
	grace := min(i.plan.grace, longest)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+stopMargin)
	defer cancel()
	return supervisor.Stop(ctx, grace)
}

// view is a copy of an instance's present state.
type view struct {
	status     process.Status
	ready      bool
	readySince time.Time
	reason     string
	// lastLine is the last line of the log, set if the process is slow to become ready. slowAt is when a starting process will count as
	// slow; zero if it does already, or is ready.
	lastLine string
	slowAt   time.Time
}

// slowStart is the time after which the status of a process that is not ready quotes its log. Most processes are ready earlier.
const slowStart = 5 * time.Second

func (i *instance) view() view {
	i.mu.Lock()
	defer i.mu.Unlock()
	v := view{status: i.status, ready: i.ready, readySince: i.readySince, reason: i.reason}
	if v.ready || v.status.Identity == (process.Identity{}) {
		return v
	}
	if slowAt := v.status.Started.Add(slowStart); time.Now().Before(slowAt) {
		v.slowAt = slowAt
	} else if lines := i.supervisor.LastLines(1); len(lines) > 0 {
		v.lastLine = lines[0]
	}
	return v
}
