package flux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ReleaseManifests downloads the manifests of a Flux release and returns their content by file name: <component>.yaml, rbac.yaml,
// policies.yaml. A folder with these files can be a ComponentsOptions.ManifestsBase. An empty releasesURL means Flux's own releases.
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

// chosen is a temporary folder with the chosen manifests of a release, and the digest of all its manifests.
type chosen struct {
	base   string
	digest string
	remove func() error
}

// readRelease gets the manifests that opts choose. opts must have its defaults set. It does not parse the manifests. On success the
// caller has to call remove.
func readRelease(ctx context.Context, opts ComponentsOptions) (_ *chosen, err error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	work, remove, err := atomicfile.TempFolder("", "flux")
	if err != nil {
		return nil, fmt.Errorf("generate flux components: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	released := opts.ManifestsBase
	if released == "" {
		released = filepath.Join(work, "release")
		if err := download(ctx, released, opts.ReleasesURL, opts.Version); err != nil {
			return nil, err
		}
	}
	r := &chosen{base: filepath.Join(work, "manifests"), remove: remove}
	if err := copyBase(r.base, released, opts); err != nil {
		return nil, err
	}
	if r.digest, err = digestOf(released); err != nil {
		return nil, err
	}
	return r, nil
}

// digestOf is a digest of the names and contents of the manifests in a folder.
func digestOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", fmt.Errorf("read flux manifests: %w", err)
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, file := range files {
		content, err := within.Named(file, maxManifest)
		if err != nil {
			return "", fmt.Errorf("read flux manifests: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// maxManifest bounds the bytes of one file of a release. The largest has some 100 kB.
const maxManifest = 4 << 20

// copyBase copies the manifests that opts need to a new folder. The generator builds that folder with kustomize, which would follow
// folders and links and fetch remote resources. So the folder must have only these files.
func copyBase(to, released string, opts ComponentsOptions) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return fmt.Errorf("generate flux components: %w", err)
	}
	names := []string{"rbac.yaml"}
	if opts.NetworkPolicy {
		names = append(names, "policies.yaml")
	}
	for _, c := range opts.Components {
		names = append(names, c+".yaml")
	}
	for _, name := range names {
		content, err := within.ReadFile(released, name, maxManifest)
		if errors.Is(err, os.ErrNotExist) {
			return diag.Errorf("choose a bundle that was made for these components, or none to download them",
				"flux manifests lack %s (looked in %s)", name, released)
		}
		if err != nil {
			return fmt.Errorf("read flux manifests: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o600); err != nil {
			return fmt.Errorf("generate flux components: %w", err)
		}
	}
	return nil
}

// screen refuses YAML bombs. A few aliases of aliases make kustomize use all memory.
func screen(base string) error {
	files, err := filepath.Glob(filepath.Join(base, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := screenManifest(filepath.Base(file), content); err != nil {
			return err
		}
	}
	return nil
}

func screenManifest(name string, content []byte) error {
	if yamledit.Tame(content) {
		return nil
	}
	_, err := yamledit.ParseWithin(content, yamledit.Limits{Bytes: maxManifest, Nodes: 500_000, Depth: 100})
	if yamledit.IsBeyond(err) {
		return diag.Wrap("read "+name, err, "the file is not from a release of Flux: check spec.flux.url")
	}
	return nil
}
