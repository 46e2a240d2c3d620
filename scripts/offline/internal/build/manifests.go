package build

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/gobuild"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/manifests"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// manifests makes every manifest of the bundle. They depend on what generates them, which is this program, and on the modules they are
// from.
func (b *builder) manifests(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	key := cache.NewKey("manifests").AddFiles(filepath.Dir(program), filepath.Base(program)).
		AddFiles(b.modules, "*/go.mod", "*/go.sum").Add("components", b.fluxComponents()...)
	dir, err := b.cache.Make(ctx, "manifests", key, b.generate)
	if err != nil {
		return err
	}
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b.files[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err
	})
}

// generate writes the manifests to dir.
func (b *builder) generate(ctx context.Context, dir string) error {
	all := map[string][]byte{}
	for _, generate := range []func(context.Context) (map[string][]byte, error){
		b.providerManifests, b.fluxManifests, b.certManagerManifests,
	} {
		files, err := generate(ctx)
		if err != nil {
			return err
		}
		maps.Copy(all, files)
	}
	if err := manifests.CheckFlux(ctx, recipe.Flux, all, b.fluxComponents()); err != nil {
		return err
	}
	for name, content := range all {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// source is the folder of a module that the module below modules/ requires.
func (b *builder) source(ctx context.Context, module, path string) (string, error) {
	return gobuild.ModuleDir(ctx, filepath.Join(b.modules, module), path)
}

func (b *builder) providerManifests(ctx context.Context) (map[string][]byte, error) {
	core, err := b.source(ctx, "controllers", "sigs.k8s.io/cluster-api")
	if err != nil {
		return nil, err
	}
	test, err := b.source(ctx, "controllers", "sigs.k8s.io/cluster-api/test")
	if err != nil {
		return nil, err
	}
	return manifests.Providers(core, test)
}

func (b *builder) manifestsBefore(ctx context.Context) error {
	core, err := b.source(ctx, "controllers-before", "sigs.k8s.io/cluster-api")
	if err != nil {
		return err
	}
	test, err := b.source(ctx, "controllers-before", "sigs.k8s.io/cluster-api/test")
	if err != nil {
		return err
	}
	providers, err := manifests.ProvidersBefore(core, test)
	if err != nil {
		return err
	}
	const fluxModule = "flux-before"
	flux2, err := b.source(ctx, fluxModule, "github.com/fluxcd/flux2/v2")
	if err != nil {
		return err
	}
	flux, err := b.fluxOf(ctx, recipe.FluxBefore, flux2, fluxModule)
	if err != nil {
		return err
	}
	if err := manifests.CheckFlux(ctx, recipe.FluxBefore, flux, b.fluxComponents()); err != nil {
		return err
	}
	certManager, err := b.certManagerOf(ctx, recipe.CertManagerBefore, "cert-manager-before")
	for _, files := range []map[string][]byte{providers, flux, certManager} {
		maps.Copy(b.files, files)
	}
	return err
}

func (b *builder) fluxComponents() []string {
	var names []string
	for _, p := range recipe.Controllers {
		if p.Flux() {
			names = append(names, p.Name)
		}
	}
	if b.ImageAutomation {
		for _, p := range recipe.ImageAutomation {
			names = append(names, p.Name)
		}
	}
	return names
}

func (b *builder) fluxManifests(ctx context.Context) (map[string][]byte, error) {
	flux2, err := gobuild.ModuleDir(ctx, b.Source, "github.com/fluxcd/flux2/v2")
	if err != nil {
		return nil, err
	}
	return b.fluxOf(ctx, recipe.Flux, flux2, "controllers")
}

// fluxOf makes the manifests of a version of Flux. flux2 is the folder of Flux's own module; the module below modules/ requires Flux's
// controllers.
func (b *builder) fluxOf(ctx context.Context, version, flux2, module string) (map[string][]byte, error) {
	controllers := map[string]string{}
	for _, name := range b.fluxComponents() {
		var err error
		if controllers[name], err = b.source(ctx, module, "github.com/fluxcd/"+name); err != nil {
			return nil, err
		}
	}
	return manifests.Flux(version, flux2, controllers)
}

func (b *builder) certManagerManifests(ctx context.Context) (map[string][]byte, error) {
	return b.certManagerOf(ctx, recipe.CertManager, "cert-manager")
}

// certManagerOf makes the manifest of a version of cert-manager, which the module below modules/ requires.
func (b *builder) certManagerOf(ctx context.Context, version, module string) (map[string][]byte, error) {
	dir, err := b.source(ctx, module, "github.com/cert-manager/cert-manager")
	if err != nil {
		return nil, err
	}
	return manifests.CertManager(version, dir)
}

// cloudProviders adds the clouds' infrastructure providers, images and manifests, to the bundle.
func (b *builder) cloudProviders(ctx context.Context) (err error) {
	for _, cloud := range b.Clouds {
		if err := b.buildPrograms(ctx, recipe.CloudProviders[cloud]); err != nil {
			return err
		}
		if err := b.programImages(ctx, []recipe.Image{recipe.CloudProviderImages[cloud]}, b.images); err != nil {
			return err
		}
	}
	step := b.report.Start("manifests of the cloud providers")
	defer func() { step.End(err) }()
	for _, cloud := range b.Clouds {
		if err := b.cloudManifests(ctx, cloud); err != nil {
			return fmt.Errorf("manifests of the provider %s: %w", cloud, err)
		}
	}
	return nil
}

// cloudProvidersBefore adds older releases of these providers, of the clouds that have one.
func (b *builder) cloudProvidersBefore(ctx context.Context) error {
	for _, cloud := range b.Clouds {
		programs := recipe.CloudProvidersBefore[cloud]
		if len(programs) == 0 {
			continue
		}
		if err := b.buildPrograms(ctx, programs); err != nil {
			return err
		}
		if err := b.programImages(ctx, []recipe.Image{recipe.CloudProviderImagesBefore[cloud]}, b.images); err != nil {
			return err
		}
		module, err := b.source(ctx, programs[0].Module, manifests.CloudModules[cloud][0])
		if err != nil {
			return err
		}
		files, err := manifests.CloudProviderBefore(cloud, module)
		if err != nil {
			return fmt.Errorf("manifests of the provider %s before: %w", cloud, err)
		}
		maps.Copy(b.files, files)
	}
	return nil
}

func (b *builder) cloudManifests(ctx context.Context, cloud string) error {
	modules := map[string]string{}
	for _, path := range manifests.CloudModules[cloud] {
		var err error
		if modules[path], err = b.source(ctx, recipe.CloudProviders[cloud][0].Module, path); err != nil {
			return err
		}
	}
	files, err := manifests.CloudProvider(cloud, modules)
	if err != nil {
		return err
	}
	maps.Copy(b.files, files)
	if cloud != "azure" {
		return nil
	}
	return b.serviceOperator(ctx, modules[manifests.AzureModule])
}

// serviceOperator makes the image of Azure Service Operator, which the Azure provider's components bring along.
func (b *builder) serviceOperator(ctx context.Context, azure string) error {
	crds, err := manifests.ServiceOperatorCRDs(azure)
	if err != nil {
		return err
	}
	more := map[string][]byte{}
	for name, content := range crds {
		more[path.Join(recipe.ServiceOperatorCRDs, name)] = content
	}
	img, err := b.programImage(ctx, recipe.ServiceOperator, more)
	b.images[recipe.ServiceOperator.Ref] = img
	return err
}
