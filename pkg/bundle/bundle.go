// Package bundle reads and writes offline bundles. A bundle has everything that a management cluster needs, in one folder or one
// .tar.zst, so that a machine without a network or a registry can make the cluster.
//
// A bundle is an OCI image layout. Its index.json names
//
//   - one manifest for each container image. Two annotations have the image's full reference, under the two keys that
//     container engines read, so that an import gives the image its right name. If the image comes from an index in a
//     registry, another annotation has this index, so that its digest can be compared with the registry's;
//   - one artifact manifest (artifactType application/vnd.fleetctl.bundle.files.v1) whose layers are plain files, each
//     annotated with its path:
//     providers/<provider-label>/<version>/{<x>-components.yaml,metadata.yaml},
//     cert-manager/<version>/cert-manager.yaml,
//     flux/<version>/{<component>.yaml,rbac.yaml,policies.yaml},
//     charts/<name>-<version>.tgz.
//
// index.json leads to a digest for every byte. A reader verifies content as it reads it, and an error about wrong content names the image
// or file. Only this package and the embedded host's image store import a registry or image library.
package bundle

import (
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// FilesArtifactType marks the manifest in index.json whose layers are the bundle's plain files.
const FilesArtifactType = "application/vnd.fleetctl.bundle.files.v1"

// The names of an OCI image layout, relative to its root.
const (
	layoutFile     = "oci-layout"
	indexFile      = "index.json"
	blobsDir       = "blobs/sha256"
	layoutContent  = `{"imageLayoutVersion":"1.0.0"}`
	layoutVersion  = "1.0.0"
	emptyConfig    = "{}" // the content of the OCI "empty" descriptor
	emptyMediaType = types.MediaType("application/vnd.oci.empty.v1+json")
	fileMediaType  = types.MediaType("application/octet-stream")
)

// The annotations with names. Podman and docker read the first, containerd the second.
const (
	annotationRefName   = "org.opencontainers.image.ref.name"
	annotationImageName = "io.containerd.image.name"
	annotationTitle     = "org.opencontainers.image.title"
)

// blobPath returns the slash-separated path of the blob with digest h in a layout.
func blobPath(h v1.Hash) string { return path.Join(blobsDir, h.Hex) }

// isImageManifest tells whether a descriptor of this media type is the manifest of one image.
func isImageManifest(t types.MediaType) bool {
	return t == types.OCIManifestSchema1 || t == types.DockerManifestSchema2
}

// FullReference returns ref with the registry, repository and tag that a container engine would add to it ("busybox" becomes
// "docker.io/library/busybox:latest"). If ref has a tag and a digest, it keeps only the digest, as Kubernetes does. It returns an error if
// ref is not a reference.
func FullReference(ref string) (string, error) {
	// Use containerd's own normalisation, because its Kubernetes part finds an image only under this name.
	full, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", diag.Errorf("an image reference looks like registry.example.com/team/app:v1.2.3",
			"%q is not an image reference: %w", ref, err)
	}
	return full.String(), nil
}

// checkSHA256 refuses digests of other algorithms. A layout has a folder for each algorithm, but a bundle has only one.
func checkSHA256(h v1.Hash) error {
	if h.Algorithm != "sha256" || len(h.Hex) != 64 || strings.Trim(h.Hex, "0123456789abcdef") != "" {
		return fmt.Errorf("digest %q is not a sha256 digest", h.String())
	}
	return nil
}
