package resolve

import (
	"context"
)

// checkTuning refuses to tune what is not there, which only the manifests tell of a provider that is not known by name.
func checkTuning(ctx context.Context, m *Manifests) error {
	managers, err := m.Flux.Managers()
	if err != nil {
		return err
	}
	return m.Source.CheckTuning(ctx, m.Providers, managers)
}
