package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/privatenet"
)

// Ports come from below those that the kernel gives to outgoing connections, and from above the 20000 to 24000 that the API servers of
// in-memory workload clusters take.
const (
	firstPort = 25000
	lastPort  = 31999
)

// ports gives each listener of each Deployment a port of this machine, and the same again for as long as the Deployment
// exists. They are kept in a file.
type ports struct {
	file     string
	loopback privatenet.Loopback // where they are; is told each that is given

	mu    sync.Mutex
	byKey map[string]int32
	taken map[int32]bool
}

// openPorts reads what was given before; a file that is gone or damaged only means new numbers.
func openPorts(file string, loopback privatenet.Loopback) (*ports, error) {
	p := &ports{file: file, loopback: loopback, byKey: map[string]int32{}, taken: map[int32]bool{}}
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if json.Unmarshal(raw, &p.byKey) != nil || p.byKey == nil {
		p.byKey = map[string]int32{}
	}
	for _, key := range slices.Sorted(maps.Keys(p.byKey)) {
		port := p.byKey[key]
		if port < firstPort || port > lastPort || p.taken[port] {
			delete(p.byKey, key) // no number that was given
			continue
		}
		p.take(key, port)
	}
	return p, nil
}

func portKey(owner string, container int32) string {
	return owner + ":" + strconv.Itoa(int(container))
}

// get returns the port for a container's port of owner ("namespace/name").
func (p *ports) get(owner string, container int32) (int32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := portKey(owner, container)
	if port, ok := p.byKey[key]; ok {
		return port, nil
	}
	port, err := p.choose()
	if err != nil {
		return 0, err
	}
	p.take(key, port)
	return port, p.save()
}

func (p *ports) take(key string, port int32) {
	p.byKey[key], p.taken[port] = port, true
	p.loopback.Claim(int(port))
}

// choose picks at random, so that another runner on this machine does not race for the same numbers. It picks none that somebody on the
// machine has: programs of the host would not reach that one any more.
func (p *ports) choose() (int32, error) {
	for range 200 {
		port := int32(firstPort + rand.IntN(lastPort-firstPort+1)) //nolint:gosec // not a secret
		if !p.taken[port] && !p.loopback.Taken(int(port)) && !(privatenet.Machine{}).Taken(int(port)) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// replace gives other numbers to those of owner's ports that somebody else has by now, and tells whether there were any.
// It is for an owner that does not run. No port moves without need: other programs of the host know it, and may go on asking there for minutes.
func (p *ports) replace(owner string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for key, port := range p.byKey {
		if !strings.HasPrefix(key, owner+":") || !p.loopback.Taken(int(port)) {
			continue
		}
		next, err := p.choose()
		if err != nil {
			return changed, err
		}
		p.take(key, next) // the old one stays marked: it is not ours
		changed = true
	}
	if !changed {
		return false, nil
	}
	return true, p.save()
}

// release forgets owner.
func (p *ports) release(owner string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, port := range p.byKey {
		if strings.HasPrefix(key, owner+":") {
			delete(p.byKey, key)
			delete(p.taken, port)
		}
	}
	return p.save()
}

func (p *ports) save() error {
	raw, err := json.Marshal(p.byKey)
	if err != nil {
		return err
	}
	return atomicfile.Write(p.file, raw, 0o600)
}
