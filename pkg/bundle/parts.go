package bundle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// runsAs lists the platforms of hosts by their names in an index. A bundle is for one of them.
var runsAs = []string{"linux/amd64", "linux/arm64"}

// platformOf returns a platform in the form to which container engines normalise it. It returns "" if the platform is not known.
func platformOf(system, architecture string) string {
	if system == "" || architecture == "" {
		return ""
	}
	architecture = strings.ToLower(architecture)
	switch architecture {
	case "x86_64", "x86-64":
		architecture = "amd64"
	case "aarch64":
		architecture = "arm64"
	}
	return strings.ToLower(system) + "/" + architecture
}

// onlyFor returns the platform for which the index has the image with this digest and no other image. It returns "" if there is no such
// platform, or if another image may run there too.
func onlyFor(index []v1.Descriptor, digest string) string {
	i := slices.IndexFunc(index, func(d v1.Descriptor) bool { return d.Digest.String() == digest })
	if i < 0 || index[i].Platform == nil {
		return ""
	}
	platform := platformOf(index[i].Platform.OS, index[i].Platform.Architecture)
	for j, d := range index {
		if d.Platform == nil || !isImageManifest(d.MediaType) {
			return "" // the image's platform is unknown
		}
		if other := platformOf(d.Platform.OS, d.Platform.Architecture); other == "" || j != i && other == platform {
			return ""
		}
	}
	return platform
}

// isPart tells whether the index leads to the image with this digest on the image's platform. The index alone is no proof, because its
// author chooses the platforms in it. So isPart also reads the image's config, which must have the same platform. It refuses the digest of
// an index.
func isPart(index []v1.Descriptor, repository name.Repository, digest string, options ...remote.Option) (bool, error) {
	platform := onlyFor(index, digest)
	if !slices.Contains(runsAs, platform) {
		return false, nil
	}
	found, err := remote.Get(repository.Digest(digest), options...)
	if err != nil {
		return false, err
	}
	var kind struct {
		Config    *json.RawMessage `json:"config"`
		Manifests *json.RawMessage `json:"manifests"`
	}
	if json.Unmarshal(found.Manifest, &kind) != nil || kind.Config == nil || kind.Manifests != nil || !isImageManifest(found.MediaType) {
		return false, nil //nolint:nilerr // not the manifest of an image
	}
	image, err := found.Image()
	if err != nil {
		return false, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return false, fmt.Errorf("read the config of %s: %w", digest, err)
	}
	return platformOf(config.OS, config.Architecture) == platform, nil
}
