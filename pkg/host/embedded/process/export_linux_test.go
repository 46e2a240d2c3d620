package process

// Status returns the present status.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Err is nil while the process runs, and after Stop. If the process ended by itself, Err is an *ExitError, even with exit code 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil || p.stopped {
		return nil
	}
	return &ExitError{p.name, *p.exit}
}
