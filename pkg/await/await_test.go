package await_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/await"
)

func TestCallReturnsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	_, err := await.Call(ctx, func() (int, error) { <-release; return 1, nil })
	if !errors.Is(err, context.Canceled) || time.Since(begin) > time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

func TestWithinReturnsAfterItsLimit(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	if _, err := await.Within(time.Millisecond, io.EOF, func() (int, error) { <-release; return 1, nil }); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestCallReturnsWhatItsCallDoes(t *testing.T) {
	if value, err := await.Call(t.Context(), func() (int, error) { return 1, io.EOF }); value != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", value, err)
	}
}
