package bundle

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// asking are the options of every request to a registry: the credentials of docker or podman, and a transport that sends them to no other
// server than the repository's.
func asking(ctx context.Context, repository name.Repository) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(roundTripper(repository)),
	}
}

// maxError bounds the text of an error of a registry, in bytes. The client of registries quotes up to 64 KiB.
const maxError = 1000

// quotable is an error of a registry as an error of fleetctl quotes it.
func quotable(err error) error { return diag.Short(err, maxError) }

func roundTripper(repository name.Repository) http.RoundTripper {
	return sameorigin.Registry(contact.Transport(remote.DefaultTransport), repository.RegistryStr())
}
