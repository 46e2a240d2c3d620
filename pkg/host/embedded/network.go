package embedded

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
)

// The docker provider's manager listens on these ports: the API servers of in-memory clusters, and a debug server that lists their names
// and ports. Clients on this machine connect to them, so they stay on the machine's loopback.
const (
	firstInMemoryPort = 19000
	lastInMemoryPort  = 24999
)

func isInMemoryPort(port int) bool { return port >= firstInMemoryPort && port <= lastInMemoryPort }

// errNetworkLost is the cause with which all processes end after the private network's helper has ended.
var errNetworkLost = errors.New("the helper of the private network has ended")

// holdInNetwork calls hold with a private loopback, or with the machine's loopback if the machine allows no private one. When the private
// loopback is lost, holdInNetwork starts all processes again in a new one.
func (s *supervisor) holdInNetwork(ctx context.Context, ready func() error) error {
	for {
		network, err := privatenet.Start(ctx, privatenet.Options{Open: isInMemoryPort, Log: s.logf})
		if err != nil {
			if ctx.Err() == nil {
				s.log.Warn("other users of this machine can reach the host's programs on loopback", "reason", err)
			}
			return s.hold(ctx, privatenet.Machine{}, ready)
		}
		err = s.holdIn(ctx, network, ready)
		if !errors.Is(err, errNetworkLost) || ctx.Err() != nil {
			return err
		}
		s.log.Warn("starting all processes again", "reason", err)
	}
}

func (s *supervisor) holdIn(ctx context.Context, network *privatenet.Network, ready func() error) (err error) {
	here, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-network.Lost():
			cancel(errNetworkLost)
		case <-here.Done():
		}
	}()
	err = s.hold(here, network, ready)
	if context.Cause(here) == errNetworkLost { //nolint:errorlint // the very one
		err = errors.Join(errNetworkLost, err)
	}
	return errors.Join(err, network.Close())
}
