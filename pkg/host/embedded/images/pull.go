package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// Keychain finds the credentials for a registry.
type Keychain = authn.Keychain

// Pull are the options of Get.
type Pull struct {
	// Keychain has credentials for private registries. Get tries it before the user's own credentials, which docker login and podman
	// login have written. A kubelet uses the credentials of its node in the same way.
	Keychain Keychain
	// Never asks no registry: an image that is not in the store is an error.
	Never bool
	// Always asks the registry which image a tag means now. If the registry cannot be reached, an image in the store is enough.
	Always bool
}

// maxError bounds the text of an error of a registry, in bytes. The client of registries quotes up to 64 KiB.
const maxError = 1000

// parallelLayers bounds the downloads of one image.
const parallelLayers = 3

// Get returns the image that ref means. It pulls the image if the store lacks it.
func (s *Store) Get(ctx context.Context, ref string, pull Pull) (Image, error) {
	img, there, err := s.Lookup(ref)
	if err != nil {
		return Image{}, err
	}
	if there && (!pull.Always || strings.Contains(ref, "@")) {
		return img, nil
	}
	if pull.Never {
		return Image{}, diag.Errorf("load it from a bundle, or set another imagePullPolicy",
			"image %s is not in the store, and imagePullPolicy is Never", ref)
	}
	result, err := s.pullOnce(ctx, ref, pull.Keychain)
	if err != nil {
		if transportErr := (*transport.Error)(nil); there && !errors.As(err, &transportErr) && ctx.Err() == nil {
			return img, nil
		}
		return Image{}, diag.Wrap("pull image "+ref, diag.Short(err, maxError), pullHint(err))
	}
	return result, nil
}

// pullOnce pulls ref. Concurrent calls for one ref share a download, which ends with the context of the call that began it. If that call
// gives up, one of the others begins again.
func (s *Store) pullOnce(ctx context.Context, ref string, keychain Keychain) (Image, error) {
	for {
		result, err, _ := s.flights.Do(ref, func() (any, error) {
			img, err := s.pull(ctx, ref, keychain)
			if err != nil && ctx.Err() != nil {
				err = &gaveUpError{err}
			}
			return img, err
		})
		if _, gaveUp := errors.AsType[*gaveUpError](err); gaveUp && ctx.Err() == nil {
			continue
		}
		pulled, ok := result.(Image)
		if err == nil && !ok {
			err = errors.New("no result")
		}
		return pulled, err
	}
}

// gaveUpError is the error of a download that ended because its context ended.
type gaveUpError struct{ error }

// Unwrap returns the error of the download.
func (e *gaveUpError) Unwrap() error { return e.error }

func pullHint(err error) string {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return "log in to this registry with `docker login` or `podman login`, or name a Secret with credentials under imagePullSecrets"
		case http.StatusNotFound:
			return "check the image's name and tag"
		}
	}
	if diag.Hint(err) != "" {
		return ""
	}
	return "without a network, use a bundle that has the image: fleetctl bundle create"
}

func (s *Store) pull(ctx context.Context, ref string, keychain Keychain) (Image, error) {
	full, err := parse(ref)
	if err != nil {
		return Image{}, err
	}
	source, err := s.source(full)
	if err != nil {
		return Image{}, err
	}
	keychains := []authn.Keychain{authn.DefaultKeychain}
	if keychain != nil {
		keychains = []authn.Keychain{keychain, authn.DefaultKeychain}
	}
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	remoteImage, err := remote.Image(source,
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.NewMultiKeychain(keychains...)), remote.WithPlatform(platform),
		remote.WithTransport(sameorigin.Registry(contact.Transport(remote.DefaultTransport), source.Context().RegistryStr())))
	if err != nil {
		return Image{}, err
	}
	digest, err := remoteImage.Digest()
	if err != nil {
		return Image{}, err
	}
	if _, there, err := s.image(full.String(), digest.Hex); err != nil {
		return Image{}, err
	} else if !there {
		if err := s.fetch(ctx, full, digest, remoteImage); err != nil {
			return Image{}, err
		}
	}
	if digested, ok := full.(reference.Digested); ok && digested.Digest().Encoded() != digest.Hex {
		// The reference names an index: record which of its images is for this machine.
		if err := s.alias(digested.Digest().Encoded(), digest.Hex); err != nil {
			return Image{}, err
		}
	} else if err := s.tag(full, digest.Hex); err != nil {
		return Image{}, err
	}
	img, there, err := s.image(full.String(), digest.Hex)
	if err == nil && !there {
		err = errors.New("another process has removed it from the store")
	}
	return img, err
}

// source is the reference from which ref is pulled: the registry's, or its mirror's.
func (s *Store) source(ref reference.Named) (name.Reference, error) {
	text := ref.String()
	if mirror, ok := s.mirrors[reference.Domain(ref)]; ok {
		text = mirror + strings.TrimPrefix(text, reference.Domain(ref))
	}
	var opts []name.Option
	if s.insecure {
		opts = append(opts, name.Insecure)
	}
	return name.ParseReference(text, opts...)
}

// fetch downloads the image's layers and assembles the image.
func (s *Store) fetch(ctx context.Context, ref reference.Named, digest v1.Hash, img v1.Image) error {
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	switch { // before the download, because the config is read into memory
	case m.Config.Size > maxDocument:
		return fmt.Errorf("its config has %d bytes, more than an image needs", m.Config.Size)
	case len(m.Layers) > maxLayers:
		return fmt.Errorf("it has more than %d layers", maxLayers)
	}
	rawConfig, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	var config v1.ConfigFile
	if err := json.Unmarshal(rawConfig, &config); err != nil {
		return err
	}
	if err := checkPlatform(ref.String(), &config); err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	digests := make([]v1.Hash, len(layers))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLayers)
	for i, l := range layers {
		if digests[i], err = l.Digest(); err != nil {
			return err
		}
		group.Go(func() error { return s.fetchLayer(groupCtx, digests[i], l) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.keep(ctx, ref, digest.Hex, rawConfig, digests)
}

func (s *Store) fetchLayer(ctx context.Context, digest v1.Hash, layer v1.Layer) error {
	_, err, _ := s.flights.Do("layer "+digest.Hex, func() (any, error) {
		if s.hasLayer(digest) {
			return nil, nil
		}
		r, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return nil, s.addLayer(ctx, digest, r)
	})
	return err
}

// KeychainFromDockerConfig reads the content of Secrets of the type kubernetes.io/dockerconfigjson.
func KeychainFromDockerConfig(configs ...[]byte) (Keychain, error) {
	all := dockerConfigs{}
	for _, raw := range configs {
		var config struct {
			Auths map[string]dockerAuth `json:"auths"`
		}
		if err := json.Unmarshal(raw, &config); err != nil {
			return nil, errors.New("it is not a docker config") // without err, which may quote credentials
		}
		for server, auth := range config.Auths {
			all[serverHost(server)] = auth
		}
	}
	return all, nil
}

type dockerAuth struct {
	Username, Password, Auth string
}

// dockerConfigs are credentials by the host of their registry.
type dockerConfigs map[string]dockerAuth

// serverHost is the registry of a key like https://index.docker.io/v1/.
func serverHost(server string) string {
	_, after, found := strings.Cut(server, "://")
	if found {
		server = after
	}
	server, _, _ = strings.Cut(server, "/")
	return server
}

// Resolve implements authn.Keychain.
func (d dockerConfigs) Resolve(target authn.Resource) (authn.Authenticator, error) {
	auth, ok := d[target.RegistryStr()]
	if !ok {
		return authn.Anonymous, nil
	}
	if auth.Auth != "" {
		decoded, err := base64.StdEncoding.DecodeString(auth.Auth)
		user, password, found := strings.Cut(string(decoded), ":")
		if err != nil || !found {
			return nil, fmt.Errorf("the credentials for %s are not base64 of user:password", target.RegistryStr())
		}
		auth.Username, auth.Password = user, password
	}
	return &authn.Basic{Username: auth.Username, Password: auth.Password}, nil
}
