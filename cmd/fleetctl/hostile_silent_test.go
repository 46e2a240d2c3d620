package main

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// firstWord calls back at the first write.
type firstWord struct {
	sync.Once
	said func()
}

func (f *firstWord) Write(p []byte) (int, error) {
	f.Do(f.said)
	return len(p), nil
}

var errSilent = errors.New("the command is silent")

// TestNoCommandIsSilent drives every command that asks a management cluster at an API server that does not answer. Without a time limit of
// its own, too, the command tells what it waits for long before it gives up.
func TestNoCommandIsSilent(t *testing.T) {
	// A command tells after 5 seconds, and a single request ends after 30. The time counts from its first request, because a busy machine
	// takes long to get there.
	const most = 25 * time.Second
	limit := regexp.MustCompile(` --timeout \S+`)
	big := bigFleet(t)
	var group errgroup.Group
	for _, line := range askingCommands {
		arrived, dir := make(chan struct{}), t.TempDir()
		first := sync.OnceFunc(func() { close(arrived) })
		s := newHostileServer(t, func(_ *hostileServer, _ http.ResponseWriter, r *http.Request) {
			first()
			<-r.Context().Done()
		})
		group.Go(func() error {
			args, err := commandIn(s, big, dir, limit.ReplaceAllString(line, ""))
			if err != nil {
				t.Error(err)
				return nil
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				select {
				case <-arrived:
				case <-ctx.Done():
					return
				}
				select {
				case <-time.After(most):
					cancel(errSilent)
				case <-ctx.Done():
				}
			}()
			word := &firstWord{said: func() { cancel(nil) }}
			cmd.Main(ctx, ui.Streams{In: strings.NewReader(""), Out: word, Err: word}, args)
			if errors.Is(context.Cause(ctx), errSilent) {
				t.Errorf("%s: it says nothing for %s", line, most)
			}
			return nil
		})
	}
	_ = group.Wait()
}
