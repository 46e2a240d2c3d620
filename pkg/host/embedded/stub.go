package embedded

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
)

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
