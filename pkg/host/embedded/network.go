package embedded

import (
	"context"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
)

// The docker provider's manager listens on these, and clients on this machine ask there: the API servers of in-memory clusters, and beside
// them a debug server that tells their names and ports. They stay the machine's.
const (
	firstInMemoryPort = 19000
	lastInMemoryPort  = 24999
)

func isInMemoryPort(port int) bool { return port >= firstInMemoryPort && port <= lastInMemoryPort }

// errNetworkLost ends the processes that were in a network whose helper has ended.
var errNetworkLost = errors.New("the helper of the private network has ended")

// holdInNetwork is hold, with a loopback that is the host's own where this machine allows that. When that is lost, the processes are started
// again in a new one.
func (s *supervisor) holdInNetwork(ctx context.Context, ready func() error) error {
	for {
		network, err := privatenet.Start(ctx, privatenet.Options{Open: isInMemoryPort, Log: s.logf})
		if err != nil {
			if ctx.Err() == nil {
				s.log.Warn("what listens on loopback is reachable by other users of this machine", "reason", err)
			}
			return s.hold(ctx, privatenet.Machine{}, ready)
		}
		err = s.holdIn(ctx, network, ready)
		if !errors.Is(err, errNetworkLost) || ctx.Err() != nil {
			return err
		}
		s.log.Warn("all processes are started again", "reason", err)
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
