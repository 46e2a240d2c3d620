package bundle

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Reach asks all registries of images at once whether they answer, and returns the names of the registries. Mirrors replace registries, as
// in Sources. Every answer counts, also one that asks for credentials, because Reach pulls no image. The error joins a contact.Error for
// each registry that does not answer.
func Reach(ctx context.Context, images []string, mirrors map[string]string) (registries []string, _ error) {
	repositories := map[string]name.Repository{}
	for _, image := range images {
		full, err := FullReference(image)
		if err != nil {
			return nil, err
		}
		parsed, err := name.ParseReference(full)
		if err == nil {
			parsed, err = mirrored(parsed, mirrors)
		}
		if err != nil {
			return nil, diag.Wrap("find the registry of image "+image, err, "")
		}
		if registry := parsed.Context().RegistryStr(); !slices.Contains(registries, registry) {
			registries, repositories[registry] = append(registries, registry), parsed.Context()
		}
	}
	slices.Sort(registries)
	var mu sync.Mutex
	silent := map[string]error{}
	var group errgroup.Group
	for registry, repository := range repositories {
		group.Go(func() error {
			_, err := transport.Ping(ctx, repository.Registry, contact.Bound(roundTripper(repository), maxManifest))
			if _, answers := errors.AsType[*transport.Error](err); answers { // the answer may be to http, after https failed
				return nil
			}
			if unreached, is := errors.AsType[*contact.Error](err); is {
				mu.Lock()
				defer mu.Unlock()
				silent[registry] = unreached
			}
			return nil
		})
	}
	_ = group.Wait() // silent has the errors, so that Reach returns all of them
	var errs []error
	for _, registry := range registries {
		errs = append(errs, silent[registry])
	}
	return registries, errors.Join(errs...)
}
