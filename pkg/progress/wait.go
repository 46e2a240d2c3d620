package progress

import "context"

// Waits hears of each request to a server. what returns for what the request waits, for a person to read: "an answer of https://…". Few
// requests wait long enough for anyone to ask. Call answered when the wait has ended.
type Waits func(what func() string) (answered func())

type waitsKey struct{}

// WithWaits returns a context whose requests waits hears of. Clients know this context, and no Reporter.
func WithWaits(ctx context.Context, waits Waits) context.Context {
	return context.WithValue(ctx, waitsKey{}, waits)
}

// Wait tells that a request waits, if somebody wants to hear it. Call answered when the wait has ended.
func Wait(ctx context.Context, what func() string) (answered func()) {
	if waits, ok := ctx.Value(waitsKey{}).(Waits); ok {
		return waits(what)
	}
	return func() {}
}
