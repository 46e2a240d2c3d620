package bundle

import (
	"context"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// asking are the options of every request to a registry: the credentials of docker or podman, and a transport that sends them to no other
// server than the repository's.
func asking(ctx context.Context, repository name.Repository) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(roundTripper(repository)),
	}
}

func roundTripper(repository name.Repository) http.RoundTripper {
	return sameorigin.Registry(contact.Transport(remote.DefaultTransport), repository.RegistryStr())
}
