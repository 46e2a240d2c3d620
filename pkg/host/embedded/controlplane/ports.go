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

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// ports are those that the control plane listens on. They are kept, because clients know them.
type ports struct {
	APIServer int `json:"apiServer"`
	Etcd      int `json:"etcd"`
	EtcdPeer  int `json:"etcdPeer"`
}

func (p *ports) all() []*int { return []*int{&p.APIServer, &p.Etcd, &p.EtcdPeer} }

// choosePorts takes the ports of last time where they are still free, and free ones for the rest. It tells whether the API
// server has another one than before, which its clients have to be told.
func choosePorts(ctx context.Context, dir string) (p ports, moved bool, err error) {
	path := filepath.Join(dir, portsFile)
	raw, err := os.ReadFile(path)
	damaged := false
	switch {
	case err == nil:
		if json.Unmarshal(raw, &p) != nil { // new ones do as well, once clients are told
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

// fillPorts holds all of them open at once while it chooses, so that none is chosen twice.
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
