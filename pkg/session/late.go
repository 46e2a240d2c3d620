package session

import (
	"context"
	"time"
)

// LookTimeout bounds a look at the cluster that is made although the command's own time is over.
const LookTimeout = 10 * time.Second

// Late does something that the end of a run must not cut off, within LookTimeout.
func Late(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LookTimeout)
	defer cancel()
	return do(ctx)
}
