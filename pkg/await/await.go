// Package await waits for calls of libraries that take no context.
package await

import (
	"context"
	"time"
)

// Call returns what call returns, or the cause of ctx's end if ctx ends first. The call then goes on in the background: its caller has to
// know what bounds it.
func Call[T any](ctx context.Context, call func() (T, error)) (T, error) {
	return before(ctx.Done(), func() error { return context.Cause(ctx) }, call)
}

// Within is Call with a time limit instead of a context. After the limit, it returns late.
func Within[T any](limit time.Duration, late error, call func() (T, error)) (T, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	return before(timer.C, func() error { return late }, call)
}

// before returns what call returns, or the error of late if end comes first.
func before[T, E any](end <-chan E, late func() error, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-end:
		var zero T
		return zero, late()
	}
}
