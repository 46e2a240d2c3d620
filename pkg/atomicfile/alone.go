package atomicfile

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrBusy is the error of Alone if another process stays in the folder.
var ErrBusy = errors.New("another command is writing there")

const (
	aloneWait = 10 * time.Second
	alonePoll = 10 * time.Millisecond // the kernel's own wait cannot be ended
)

// Alone keeps other processes that call it for the same folder waiting until release, or until this process ends. It leaves no file there.
// It waits until ctx ends, and no longer than ten seconds for others. On Windows, and on file systems without locks of folders, it keeps
// nobody waiting. Errors: that of ctx, and ErrBusy.
func Alone(ctx context.Context, root *os.Root) (release func() error, err error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, aloneWait,
		diag.Errorf("wait until it ends, then run the command again", "%w: %s", ErrBusy, root.Name()))
	defer cancel()
	for ctx.Err() == nil {
		if !heldByOthers(folder) {
			return folder.Close, nil // the kernel releases the lock with it
		}
		select {
		case <-ctx.Done():
		case <-time.After(alonePoll):
		}
	}
	return nil, errors.Join(context.Cause(ctx), folder.Close())
}
