package embedded

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
)

func load(context.Context, string, host.ImageArchive, []string, func(string)) error { return nil }

func (s *supervisor) programs(context.Context) (*controlplane.Programs, error) {
	return s.config.Programs, nil
}

type workloads struct{}

func newWorkloads(*supervisor) *workloads { return &workloads{} }

func (*workloads) Run(ctx context.Context, _ *rest.Config, ready func() error) error {
	if err := ready(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (*workloads) Resolve(context.Context, string, string) (string, error) {
	return "", errors.New("no")
}
