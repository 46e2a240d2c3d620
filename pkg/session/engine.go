package session

import (
	"context"
	"os"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// dockerProvider makes workload clusters of containers, through the socket of this machine's engine.
const (
	dockerProvider = "docker"
	dockerManager  = "capd-controller-manager"
	dockerSocket   = "/var/run/docker.sock"
)

// detectEngine looks for this machine's container engine once in a session: a client whose daemon is gone takes long to say so.
func (s *Session) detectEngine(ctx context.Context) (*engine.Engine, error) {
	return s.onMachine.Once(func() (*engine.Engine, error) { return engine.Detect(ctx) })
}

// MountEngine gives the docker provider the socket of the container engine, if the provider is to be installed and the host has an engine.
func (s *Session) MountEngine(ctx context.Context, o *host.CreateOptions) error {
	onEngine, ok := s.Host.(host.OnEngine)
	declared := slices.ContainsFunc(o.ExtraMounts, func(m host.Mount) bool { return m.ContainerPath == dockerSocket })
	if !s.UsesEngine() || !ok || declared {
		return nil
	}
	socket, err := onEngine.EngineSocket(ctx)
	if err != nil {
		return err
	}
	o.ExtraMounts = append(o.ExtraMounts, host.Mount{HostPath: socket, ContainerPath: dockerSocket})
	return nil
}

// UsesEngine tells whether the docker provider, which uses the container engine itself, is to be installed.
func (s *Session) UsesEngine() bool {
	return slices.ContainsFunc(s.Mgmt.Providers, func(p v1alpha1.Provider) bool {
		return p.Type == v1alpha1.ProviderInfrastructure && p.Name == dockerProvider
	})
}

// Tuning returns the tuning of fleet.yaml. If the docker provider's manager runs as a process of this machine, it adds the address of the
// container engine.
func (s *Session) Tuning(ctx context.Context) []kube.Tuning {
	all := TuningOf(s.Mgmt)
	socket := s.otherSocket(ctx)
	if socket == "" {
		return all
	}
	at := slices.IndexFunc(all, func(t kube.Tuning) bool { return t.Manager == dockerManager })
	if at < 0 {
		at = len(all)
		all = append(all, kube.Tuning{Manager: dockerManager})
	}
	all[at].Env = map[string]string{"DOCKER_HOST": "unix://" + socket}
	return all
}

// otherSocket returns the socket of the container engine if the docker provider would not find it by itself, such as Podman's. It returns
// "" if the provider finds the socket, or if no engine answers and the provider makes only in-memory clusters.
func (s *Session) otherSocket(ctx context.Context) string {
	if !s.Traits().Processes || !s.UsesEngine() {
		return ""
	}
	if _, err := os.Stat(dockerSocket); err == nil {
		return ""
	}
	onMachine, err := s.detectEngine(ctx)
	if err != nil {
		return ""
	}
	socket, err := onMachine.Socket(ctx)
	if err != nil {
		return ""
	}
	return socket
}

// TuningOf converts the tuning of a management cluster to the type that pkg/kube applies.
func TuningOf(m *v1alpha1.ManagementCluster) []kube.Tuning {
	all := make([]kube.Tuning, 0, len(m.Tuning))
	for _, t := range m.Tuning {
		all = append(all, kube.Tuning{
			Manager: t.Manager, Flags: t.Flags, Requests: amounts(t.Resources.Requests),
			Limits: amounts(t.Resources.Limits),
		})
	}
	return all
}

func amounts(list v1alpha1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, amount := range map[string]string{"cpu": list.CPU, "memory": list.Memory} {
		if amount != "" {
			out[name] = amount
		}
	}
	return out
}
