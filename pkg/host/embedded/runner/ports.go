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

// The range of the ports. It is below the ports that the kernel gives to outgoing connections, and above 20000 to 24000, which the API
// servers of in-memory workload clusters use.
const (
	firstPort = 25000
	lastPort  = 31999
)

// ports gives each listener of each Deployment a port of this machine. A listener keeps its port as long as the Deployment exists. A file
// keeps the ports.
type ports struct {
	file     string
	loopback privatenet.Loopback // claims each port

	mu    sync.Mutex
	byKey map[string]int32
	taken map[int32]bool
}

// openPorts reads the ports from file. With a missing or damaged file, listeners get new ports.
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
			delete(p.byKey, key) // the file is damaged: choose never returned this port
			continue
		}
		p.take(key, port)
	}
	return p, nil
}

func portKey(owner string, container int32) string {
	return owner + ":" + strconv.Itoa(int(container))
}

// get returns the machine's port for a container's port of the Deployment owner ("namespace/name"). The first call chooses it.
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

// choose picks a free port at random, so that another runner on this machine seldom picks the same. It picks no port on which another
// program of the machine listens, because the host's programs could no longer reach that program.
func (p *ports) choose() (int32, error) {
	for range 200 {
		port := int32(firstPort + rand.IntN(lastPort-firstPort+1)) //nolint:gosec // not a secret
		if !p.taken[port] && !p.loopback.Taken(int(port)) && !(privatenet.Machine{}).Taken(int(port)) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// replace chooses new ports for owner in place of the ports on which another program now listens. It returns whether there were such ports.
// owner must not run. Its other ports stay, because the host's programs know them and may use them for some minutes.
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
		p.take(key, next) // the old port stays marked as taken: another program has it
		changed = true
	}
	if !changed {
		return false, nil
	}
	return true, p.save()
}

// release frees owner's ports.
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
