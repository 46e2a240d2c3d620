package contact

import (
	"context"
	"sync"
	"time"
)

// Watched is the limit of silence for a command whose user waits for short answers, such as a list of versions, and can run it again.
const Watched = 10 * time.Second

// patience is how long the requests of one context wait for a silent server, and which servers were silent.
type patience struct {
	limit  time.Duration
	mu     sync.Mutex
	silent map[string]*SilentError
}

type patienceKey struct{}

// WithSilence returns a context whose requests give a reached server up after limit without an answer, if that is shorter than Silence.
// What one request finds out holds for all: once a server was silent, the context's later requests to it fail at once with the same
// *SilentError. So however many requests a command has for a silent server, it waits about as long as for one.
func WithSilence(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, &patience{limit: limit, silent: map[string]*SilentError{}})
}

// patienceOf returns the patience of a context, or nil.
func patienceOf(ctx context.Context) *patience {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	return p
}

// within returns the shorter of usual and the limit of p, which may be nil.
func (p *patience) within(usual time.Duration) time.Duration {
	if p == nil {
		return usual
	}
	return min(usual, p.limit)
}

// before returns the error of an earlier request to a host, or nil; p may be nil.
func (p *patience) before(host string) *SilentError {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent[host]
}

// remember notes that a server was silent; p may be nil.
func (p *patience) remember(silent *SilentError) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent[silent.Host] = silent
}
