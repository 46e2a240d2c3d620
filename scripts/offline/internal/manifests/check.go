package manifests

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen/install"
)

// CheckFlux generates Flux's install manifest from the files, as fleetctl does from a bundle, and checks that every
// component is in it: a base that manifestgen cannot use would be found on a user's machine otherwise.
func CheckFlux(_ context.Context, version string, files map[string][]byte, components []string) error {
	base, err := os.MkdirTemp("", "flux-base-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	prefix := path.Join("flux", version) + "/"
	for name, content := range files {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if err := os.WriteFile(filepath.Join(base, path.Base(name)), content, 0o644); err != nil {
			return err
		}
	}
	options := install.MakeDefaultOptions()
	options.Version, options.Components = version, components
	manifest, err := install.Generate(options, base)
	if err != nil {
		return fmt.Errorf("the bundle's Flux manifests are of no use to manifestgen: %w", err)
	}
	for _, component := range components {
		if !strings.Contains(manifest.Content, options.Registry+"/"+component+":v") {
			return fmt.Errorf("manifestgen leaves out the Flux component %s", component)
		}
	}
	return nil
}
