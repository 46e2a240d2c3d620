package process

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Phase is what a Supervisor is doing.
type Phase string

// The phases of a supervised process.
const (
	PhaseStarting Phase = "Starting" // the process runs and is not ready yet
	PhaseReady    Phase = "Ready"    // the process runs and has been ready since it started
	PhaseBackOff  Phase = "BackOff"  // the process has ended, and is started again after a pause
	PhaseStopped  Phase = "Stopped"  // Stop was called, and the process has ended
)

// Status of a supervised process.
type Status struct {
	Phase Phase
	// Identity of the running process; zero if none runs.
	Identity Identity
	// Started is when the running process was started.
	Started time.Time
	// Restarts counts the starts after the first one.
	Restarts int
	// LastExit is the last end of the process; nil if it has not ended yet.
	LastExit *Exit
	// StartErr is the error of the last start, if the process could not be started, for example because its program is missing.
	StartErr error
	// NextStart is the time of the next start, in PhaseBackOff.
	NextStart time.Time
}

// SupervisorOptions of Supervise. A zero value means what the kubelet does with ReduceDefaultCrashLoopBackOffDecay (KEP-4603): a pause of 1
// s that doubles up to 1 min, and starts anew after 10 min. The kubelet's old pauses grew up to 5 min. On a busy machine, a
// webhook's server that had lost its lease several times stayed away that long, and all other programs waited for the webhook.
type SupervisorOptions struct {
	// BackOff is the pause before the first restart. Each further restart doubles the pause.
	BackOff time.Duration
	// MaxBackOff is the longest pause.
	MaxBackOff time.Duration
	// ResetAfter is how long a process must have run for the next pause to be BackOff again.
	ResetAfter time.Duration
	// FirstRestartAtOnce leaves out the pause if the process had run for ResetAfter, or had never ended before.
	FirstRestartAtOnce bool
	// OnChange, if not nil, is called with each new status, one call after the other. It must not block, and not call the Supervisor.
	OnChange func(Status)
}

// Supervisor keeps a process running.
type Supervisor struct {
	name    string
	opts    SupervisorOptions
	cancel  context.CancelFunc
	stopped chan struct{}
	kick    chan struct{}

	mu      sync.Mutex
	spec    Spec
	status  Status
	changed chan struct{} // closed and replaced with each new status
	process *Process
	grace   time.Duration
}

// Supervise starts the process, and starts it again whenever it ends, until Stop. It returns before the process runs.
func Supervise(spec Spec, opts SupervisorOptions) *Supervisor {
	setDefault(&opts.BackOff, time.Second)
	setDefault(&opts.MaxBackOff, time.Minute)
	setDefault(&opts.ResetAfter, 10*time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	s := &Supervisor{
		name: spec.Name, spec: spec, opts: opts, cancel: cancel, stopped: make(chan struct{}), kick: make(chan struct{}, 1),
		changed: make(chan struct{}), status: Status{Phase: PhaseStarting},
	}
	go s.run(ctx)
	return s
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// run starts the process again and again until ctx ends.
func (s *Supervisor) run(ctx context.Context) {
	defer close(s.stopped)
	failures := 0
	for restarts := 0; ; restarts++ {
		started := time.Now()
		s.runOnce(ctx, restarts)
		if ctx.Err() != nil {
			s.update(func(st *Status) { st.Phase, st.Identity = PhaseStopped, Identity{} })
			return
		}
		if time.Since(started) >= s.opts.ResetAfter {
			failures = 0
		}
		pause := s.pause(failures)
		failures++
		s.update(func(st *Status) {
			st.Phase, st.Identity, st.NextStart = PhaseBackOff, Identity{}, time.Now().Add(pause)
		})
		select {
		case <-ctx.Done():
			s.update(func(st *Status) { st.Phase = PhaseStopped })
			return
		case <-s.kick:
		case <-time.After(pause):
		}
	}
}

// pause is the back-off after so many earlier ends in a row.
func (s *Supervisor) pause(failures int) time.Duration {
	if s.opts.FirstRestartAtOnce {
		if failures == 0 {
			return 0
		}
		failures--
	}
	pause := s.opts.BackOff
	for range failures {
		if pause *= 2; pause >= s.opts.MaxBackOff {
			return s.opts.MaxBackOff
		}
	}
	return pause
}

// runOnce starts the process and returns when it has ended.
func (s *Supervisor) runOnce(ctx context.Context, restarts int) {
	select {
	case <-s.kick: // drop a kick for a back-off that is over
	default:
	}
	s.mu.Lock()
	spec := s.spec
	s.mu.Unlock()
	p, err := start(spec)
	if err != nil {
		s.update(func(st *Status) { st.StartErr, st.Restarts = err, restarts })
		return
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	s.update(func(st *Status) {
		*st = Status{Phase: PhaseStarting, Identity: p.Identity(), Started: time.Now(), Restarts: restarts, LastExit: st.LastExit}
	})
	if err := p.awaitReady(ctx, spec.Ready); err == nil {
		s.update(func(st *Status) { st.Phase = PhaseReady })
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		s.mu.Lock()
		grace := s.grace
		s.mu.Unlock()
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+stopTimeout)
		defer cancel()
		_ = p.Stop(stopCtx, grace) // an error means that even a kill did not end the process
	}
	s.update(func(st *Status) { st.LastExit = p.Exit() })
}

func (s *Supervisor) update(change func(*Status)) {
	s.mu.Lock()
	change(&s.status)
	status := s.status
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.opts.OnChange != nil {
		s.opts.OnChange(status)
	}
}

// SetSpec sets the spec for the next start. The running process stays as it is, and the name never changes.
func (s *Supervisor) SetSpec(spec Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec.Name = s.name
	s.spec = spec
}

// Status returns the present status.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Name of the process, from its Spec.
func (s *Supervisor) Name() string { return s.name }

// LastLines returns up to n of the last lines of output, of the running process or else of the last one.
func (s *Supervisor) LastLines(n int) []string {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.LastLines(n)
}

// AwaitReady returns nil when the process is ready. It fails when ctx ends, with the reason of the process's last end in the error's tree,
// and when Stop is called. With tries above 0 it also fails after the process has ended that many times; with 0 it waits through all
// restarts.
func (s *Supervisor) AwaitReady(ctx context.Context, tries int) error {
	for {
		s.mu.Lock()
		status, changed := s.status, s.changed
		s.mu.Unlock()
		failed := status.StartErr
		if status.LastExit != nil && failed == nil {
			failed = &ExitError{s.name, *status.LastExit}
		}
		switch {
		case status.Phase == PhaseReady:
			return nil
		case status.Phase == PhaseStopped:
			return errors.Join(ErrGone, failed)
		case status.Phase == PhaseBackOff && tries > 0 && status.Restarts+1 >= tries:
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), failed)
		}
	}
}

// Restart ends the running process, as after a failed liveness probe. The process is then started again after its back-off, as if it had
// ended by itself. During a back-off, Restart starts the process at once. grace is as for Process.Stop.
func (s *Supervisor) Restart(ctx context.Context, grace time.Duration) error {
	s.mu.Lock()
	p, phase := s.process, s.status.Phase
	s.mu.Unlock()
	if phase == PhaseBackOff {
		select {
		case s.kick <- struct{}{}:
		default:
		}
		return nil
	}
	if p == nil {
		return nil
	}
	return p.Stop(ctx, grace)
}

// Stop ends the process as Process.Stop does, and does not start it again.
func (s *Supervisor) Stop(ctx context.Context, grace time.Duration) error {
	s.mu.Lock()
	s.grace = grace
	s.mu.Unlock()
	s.cancel()
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.killNow(ctx))
	}
}

// killNow kills the process at once, for a caller that cannot wait for the grace.
func (s *Supervisor) killNow(ctx context.Context) error {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Stop(ctx, 0)
}
