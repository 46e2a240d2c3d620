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

// asking returns the options of every request to a registry: the credentials of docker or podman, and a transport that sends them only to
// the repository's server.
func asking(ctx context.Context, repository name.Repository) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(roundTripper(repository)),
	}
}

// maxError bounds the quoted text of a registry's error, in bytes. The registry client quotes up to 64 KiB.
const maxError = 1000

// quotable shortens an error of a registry, so that an error of fleetctl can quote it.
func quotable(err error) error { return diag.Short(err, maxError) }

func roundTripper(repository name.Repository) http.RoundTripper {
	return sameorigin.Registry(contact.Transport(remote.DefaultTransport), repository.RegistryStr())
}
