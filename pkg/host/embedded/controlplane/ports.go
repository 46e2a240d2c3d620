package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

const portsFile = "ports.json"

// loopback is the only address on which the control plane listens.
const loopback = "127.0.0.1"

// ports are the TCP ports on which the control plane listens. A file keeps them, because clients know them.
type ports struct {
	APIServer int `json:"apiServer"`
	Etcd      int `json:"etcd"`
	EtcdPeer  int `json:"etcdPeer"`
}

func (p *ports) all() []*int { return []*int{&p.APIServer, &p.Etcd, &p.EtcdPeer} }

// choosePorts takes the ports of the last start where they are still free, and other free ports for the rest. moved says whether the
// API server's port has changed, which its clients have to learn.
func choosePorts(ctx context.Context, dir string) (p ports, moved bool, err error) {
	path := filepath.Join(dir, portsFile)
	raw, err := os.ReadFile(path)
	damaged := false
	switch {
	case err == nil:
		if json.Unmarshal(raw, &p) != nil { // a damaged file costs only the old numbers
			p, damaged = ports{}, true
		}
	case !errors.Is(err, fs.ErrNotExist):
		return p, false, err
	}
	before := p.APIServer
	if err := fillPorts(ctx, &p); err != nil {
		return p, false, err
	}
	if raw, err = json.Marshal(p); err != nil {
		return p, false, err
	}
	return p, damaged || before != 0 && before != p.APIServer, atomicfile.Write(path, raw, 0o600)
}

// fillPorts chooses the missing ports. It keeps each open until all are chosen, so that none is chosen twice.
func fillPorts(ctx context.Context, p *ports) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for _, port := range p.all() {
		l, err := listen(ctx, *port)
		if err != nil && *port != 0 {
			l, err = listen(ctx, 0)
		}
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		if address, ok := l.Addr().(*net.TCPAddr); ok {
			*port = address.Port
		}
	}
	return nil
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address(port))
}

// taken tells whether one of the ports cannot be listened on any more.
func (p *ports) taken(ctx context.Context) bool {
	for _, port := range p.all() {
		l, err := listen(ctx, *port)
		if err != nil {
			return true
		}
		_ = l.Close()
	}
	return false
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
