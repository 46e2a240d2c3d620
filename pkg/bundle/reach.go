package bundle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Reach asks, side by side, whether the registries of images answer, and returns the names of the registries. Mirrors replace registries,
// as in Sources. Reach pulls nothing. Of an image with a tag or a digest, Reach asks whether the registry gives it to this machine: a
// registry that wants other credentials is in the error. Of an image without one, any answer will do. An image that the registry does not
// have is no error, because the pull says that better. If a registry cannot be reached, its contact.Error is in the error's tree.
func Reach(ctx context.Context, images []string, mirrors map[string]string) (registries []string, _ error) {
	asked := map[string]question{}
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
		registry, exact := parsed.Context().RegistryStr(), strings.HasSuffix(image, parsed.Identifier())
		if before, known := asked[registry]; !known || exact && !before.exact {
			asked[registry] = question{parsed, exact}
		}
	}
	registries = slices.Sorted(maps.Keys(asked))
	refused := make([]error, len(registries)) // so that all are told at once
	var group sync.WaitGroup
	for i, registry := range registries {
		group.Go(func() { refused[i] = asked[registry].ask(ctx) })
	}
	group.Wait()
	return registries, errors.Join(refused...)
}

// question is what Reach asks a registry for.
type question struct {
	image name.Reference
	exact bool // whether the image has a tag or a digest, and not the default tag
}

// ask returns an error if the registry cannot be reached, or does not give the image to this machine.
func (q question) ask(ctx context.Context) (err error) {
	repository := q.image.Context()
	if q.exact {
		_, err = remote.Head(q.image, asking(ctx, repository)...)
	} else {
		_, err = transport.Ping(ctx, repository.Registry, contact.Bound(roundTripper(repository), maxManifest))
	}
	if answer, answers := errors.AsType[*transport.Error](err); answers { // perhaps by http, after https had no answer
		if q.exact && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
			return fmt.Errorf("%s does not give the image %s to this machine: it answers %d %s",
				repository.RegistryStr(), q.image, answer.StatusCode, http.StatusText(answer.StatusCode))
		}
		return nil
	}
	if unreached, is := errors.AsType[*contact.Error](err); is {
		return unreached
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("%s has a certificate that this machine does not trust: %w", repository.RegistryStr(), quotable(err))
	}
	return nil // something else answers at that address, and the pull says what is wrong with it
}
