package session

import (
	"context"
	"time"
)

// LookTimeout bounds a request to the cluster that is made after the command's own time is over.
const LookTimeout = 10 * time.Second

// Late calls do with a context that the end of the run does not cancel, for at most LookTimeout.
func Late(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LookTimeout)
	defer cancel()
	return do(ctx)
}
