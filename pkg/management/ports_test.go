package management_test

import (
	"net"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// startingHost is one whose program begins to listen when it has just been looked at.
type startingHost struct {
	host.Host
	listener net.Listener
	looks    int
}

func (s *startingHost) Listens(port int) (string, error) {
	s.looks++
	if s.looks == 1 || s.listener.Addr().(*net.TCPAddr).Port != port {
		return "", nil
	}
	return "manager", nil
}

// A port that the host's own program takes between two looks is not somebody else's.
func TestPortOfAHostThatStarts(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	store := state.Store{Dir: t.TempDir()}
	if r := management.CheckPort(t.Context(), store, "acme", &startingHost{listener: listener}, port); r.Status != preflight.StatusOK {
		t.Errorf("%+v", r)
	}
}
