package handover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// patience is how long an API server may take for an answer before the progress of a hand-over names it. A request may
// wait for half a minute, and the counts of Progress stand still meanwhile.
const patience = 5 * time.Second

// SilentError says which side of a hand-over no longer answers.
type SilentError struct {
	// Side is the name of the management cluster, and Host the address of its API server.
	Side, Host string
	Err        error
}

// Error names the side and the cause.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the API server of %s at %s does not answer: %v", e.Side, e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *SilentError) Unwrap() error { return e.Err }

// refusedError says which side of a hand-over no longer accepts the credential.
type refusedError struct {
	side Side
	err  error
}

// Error names the side and the cause.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the API server of %s at %s does not accept the credential of the kubeconfig: %v",
		e.side.Name, e.side.Client.Host(), e.err)
}

// Unwrap returns the cause.
func (e *refusedError) Unwrap() error { return e.err }

// listener hears of the requests to both sides, and remembers the last Progress.
type listener struct {
	tell  func(Progress) // nil if nobody wants to know
	sides []Side

	mu     sync.Mutex
	last   Progress
	silent map[string]int // by side: its requests that have waited longer than patience
}

// attend returns a context and a function for progress, which both take the place of the given ones. If a side does not
// answer a request for a while, the progress says so until the side answers. The third result names in an error of the
// hand-over the side that does not answer, or that refuses the login; it returns other errors as they are.
func attend(
	ctx context.Context, tell func(Progress), sides ...Side,
) (listening context.Context, telling func(Progress), named func(error) error) {
	l := &listener{tell: tell, silent: map[string]int{}}
	for _, s := range sides {
		if s.Client != nil {
			l.sides = append(l.sides, s)
		}
	}
	named = func(err error) error {
		if ctx.Err() != nil { // the command was interrupted, or its time is over
			return err
		}
		return l.named(err)
	}
	if tell != nil {
		telling = l.told
	}
	outer := ctx
	return progress.WithWaits(ctx, func(what func() string) func() {
		answered, heard := progress.Wait(outer, what), l.wait(what)
		return func() { heard(); answered() }
	}), telling, named
}

// told passes on a Progress of the hand-over, with the side that does not answer.
func (l *listener) told(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = p
	l.again()
}

// again tells the last Progress. The caller holds the lock, so that no older Progress comes after a newer one.
func (l *listener) again() {
	p := l.last
	for _, s := range l.sides {
		if l.silent[s.Name] > 0 {
			p.Silent = fmt.Sprintf("%s does not answer at %s", s.Name, s.Client.Host())
			break
		}
	}
	if l.tell != nil {
		l.tell(p)
	}
}

// wait is told of a request, and returns what is called when the request has ended. what is the text of progress.Waits.
func (l *listener) wait(what func() string) (answered func()) {
	var mu sync.Mutex
	var over bool
	var side string
	timer := time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if side = l.sideOf(what()); side != "" && !over {
			l.count(side, 1)
		} else {
			side = ""
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; side != "" {
			l.count(side, -1)
			side = ""
		}
	}
}

// sideOf returns the name of the side for whose answer a request waits, or "".
func (l *listener) sideOf(what string) string {
	if s := l.only(func(c *kube.Client) bool { return c.Awaits(what) }); s != nil {
		return s.Name
	}
	return ""
}

// only returns the one side of which is holds. It returns nil if there is none, or if both sides are behind one address.
func (l *listener) only(is func(*kube.Client) bool) *Side {
	var found *Side
	for i := range l.sides {
		switch {
		case !is(l.sides[i].Client):
		case found != nil:
			return nil
		default:
			found = &l.sides[i]
		}
	}
	return found
}

func (l *listener) count(side string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.silent[side]
	l.silent[side] += n
	if (was > 0) != (l.silent[side] > 0) {
		l.again()
	}
}

// named returns err with the side that did not answer, if err is about one.
func (l *listener) named(err error) error {
	if _, already := errors.AsType[*SilentError](err); already || err == nil {
		return err
	}
	if s := l.only(func(c *kube.Client) bool { return c.Unanswered(err) }); s != nil {
		return &SilentError{Side: s.Name, Host: s.Client.Host(), Err: err}
	}
	_, refused := errors.AsType[*refusedError](err)
	if s := l.only(func(c *kube.Client) bool { return c.RefusedLogin(err) }); s != nil && !refused {
		return diag.Wrap("", &refusedError{*s, err},
			"its credential may have expired: get a new kubeconfig of "+s.Name+", and run the same command again, which continues")
	}
	return err
}
