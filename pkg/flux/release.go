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

// chosen is what opts choose of a release, in files of its own, and the digest of all of it.
type chosen struct {
	base   string
	digest string
	remove func() error
}

// readRelease gets what opts, with defaults, choose. Nothing of it is looked into. Where it succeeds, the caller calls remove.
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

// digestOf is one digest for the manifests in a folder, by their names and contents.
func digestOf(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", fmt.Errorf("read flux manifests: %w", err)
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read flux manifests: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// maxManifest bounds one file of a release; the largest has some 100 kB.
const maxManifest = 4 << 20

// copyBase copies what opts need of a release to a new folder. The generator writes beside it, and builds it with kustomize, which follows
// folders and links, and fetches what they name: nothing comes there but these files.
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
		content, err := within.ReadFile(released, name, maxManifest+1)
		if errors.Is(err, os.ErrNotExist) {
			return diag.Errorf("choose a bundle that was made for these components, or none to download them",
				"flux manifests lack %s (looked in %s)", name, released)
		}
		if err == nil && len(content) > maxManifest {
			err = fmt.Errorf("%s is larger than %d MiB", name, maxManifest>>20)
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

// screen refuses manifests that are bombs: kustomize takes all memory there is for a few aliases of aliases.
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
		return diag.Wrap("read "+name, err, "it is nothing that Flux releases: look at where spec.flux.url leads")
	}
	return nil
}
