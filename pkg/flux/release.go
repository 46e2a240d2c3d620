package flux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// ReleaseManifests downloads the manifests of a Flux release and returns them by file name: <component>.yaml, rbac.yaml,
// policies.yaml. A folder with them is a ComponentsOptions.ManifestsBase. An empty releasesURL stands for Flux's own.
func ReleaseManifests(ctx context.Context, releasesURL, version string) (files map[string][]byte, err error) {
	opts := ComponentsOptions{Version: version, ReleasesURL: releasesURL}.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	dir, remove, err := atomicfile.TempFolder("", "flux")
	if err != nil {
		return nil, err
	}
	defer func() { _ = remove() }() // nothing depends on it
	release := filepath.Join(dir, "release")
	if err := download(ctx, release, opts.ReleasesURL, version); err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(release, "*.yaml"))
	if err != nil {
		return nil, err
	}
	files = make(map[string][]byte, len(paths))
	for _, p := range paths {
		if files[filepath.Base(p)], err = os.ReadFile(p); err != nil {
			return nil, fmt.Errorf("read Flux's manifests: %w", err)
		}
	}
	return files, nil
}
