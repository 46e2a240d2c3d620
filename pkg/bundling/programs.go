package bundling

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/programs"
	"github.com/fleetctl/fleetctl/pkg/resolve"
)

// done removes what is not needed any more, the last first.
func (b *creation) done() {
	for _, remove := range slices.Backward(b.cleanup) {
		_ = remove() // it is temporary
	}
}

// folder is a new temporary folder, for as long as the run lasts.
func (b *creation) tempFolder(kind string) (string, error) {
	dir, remove, err := atomicfile.TempFolder("", kind)
	if err != nil {
		return "", diag.Wrap("make a temporary folder", err, "free some space, or set TMPDIR")
	}
	b.cleanup = append(b.cleanup, remove)
	return dir, nil
}

// openFrom opens the bundle that is taken from, and unpacks its manifests.
func (b *creation) openFrom(ctx context.Context) (err error) {
	if b.opts.From == "" {
		return nil
	}
	if samePlace(b.opts.From, b.opts.Output) || samePlace(b.opts.From, b.folder) {
		return diag.Usage("give the new bundle another path", "--from %s is the bundle that is to be made", b.opts.From)
	}
	if b.from, err = bundle.Open(ctx, b.opts.From, bundle.WithCache(filepath.Join(b.session.Deps.CacheDir, "bundles"))); err != nil {
		return err
	}
	b.cleanup = append(b.cleanup, b.from.Close)
	if b.fromDir, err = b.tempFolder("from"); err != nil {
		return err
	}
	for prefix, below := range map[string]string{"providers": "", "flux": "", "cert-manager": "providers"} {
		if err := b.from.WriteFiles(ctx, filepath.Join(b.fromDir, below), prefix); err != nil && !errors.Is(err, bundle.ErrNotFound) {
			return err
		}
	}
	return nil
}

// samePlace tells whether two paths lead to one file or folder.
func samePlace(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// resolveProviders finds the components of all providers: in the bundle to copy from, or else in their releases.
func (b *creation) resolveProviders(ctx context.Context, declared []releases.Provider) (*releases.Source, []releases.Provider, error) {
	if b.from != nil {
		source, err := releases.NewSource(releases.SourceOptions{ //nolint:contextcheck // it reads nothing yet
			Providers: declared, Repository: filepath.Join(b.fromDir, "providers"),
			CertManagerVersion: b.session.Mgmt.CertManager.Version, CertManagerURL: b.session.Mgmt.CertManager.URL,
		})
		if err != nil {
			return nil, nil, err
		}
		providers, err := source.Resolve(ctx, declared)
		if err == nil {
			_, err = source.CertManager(ctx)
		}
		if err == nil {
			return source, providers, nil
		}
		b.session.Deps.Report.Warn("The components come from their releases, as " + b.opts.From + " does not have all of them: " + err.Error())
	}
	//nolint:contextcheck // it reads nothing yet
	source, err := resolve.ProviderSource(b.session, declared, nil, nil, b.session.Mgmt.CertManager)
	if err != nil {
		return nil, nil, err
	}
	providers, err := source.Resolve(ctx, declared)
	return source, providers, err
}

// fluxFrom are the manifests of a version of Flux in the bundle that is taken from; nil where it has none.
func (b *creation) fluxFrom(version string) (map[string][]byte, error) {
	if b.from == nil {
		return nil, nil
	}
	dir := filepath.Join(b.fromDir, "flux", version)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files := map[string][]byte{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files[e.Name()] = content
	}
	return files, err
}

// findPrograms finds the programs of the host's control plane, if they do not come from published images.
func (b *creation) findPrograms(ctx context.Context, detail func(string)) (err error) {
	if b.opts.Programs == "" && b.opts.Releases == nil {
		return nil
	}
	needed := hosts.Programs(b.session.Mgmt.Host, b.session.Mgmt.KubernetesVersion)
	if len(needed) == 0 {
		return diag.Usage("leave --programs out", "a host of type %s brings its own programs along", b.session.Mgmt.Host.Type)
	}
	architecture := cmp.Or(b.opts.Architecture, runtime.GOARCH)
	var found []programs.Found
	if b.opts.Programs != "" {
		found, err = programs.Folder(ctx, b.opts.Programs, architecture, b.wantedOf(needed))
	} else {
		var dir string
		if dir, err = b.tempFolder("programs"); err != nil {
			return err
		}
		found, err = programs.Download(ctx, dir, architecture, *b.opts.Releases, wanted(needed), detail)
	}
	if err != nil {
		return err
	}
	b.programs = imageOf(needed, found)
	return nil
}

func wanted(needed []host.Program) []programs.Wanted {
	var all []programs.Wanted
	for _, p := range needed {
		all = append(all, programs.Wanted{Name: p.Name, Version: p.Version})
	}
	return all
}

// wantedOf is what the programs of a folder have to be: of Kubernetes' version where fleet.yaml names one, and of any version of etcd.
func (b *creation) wantedOf(needed []host.Program) []programs.Wanted {
	all := wanted(needed)
	for i := range all {
		if b.session.Mgmt.KubernetesVersion == "" || all[i].Name == "etcd" {
			all[i].Version = ""
		}
	}
	return all
}

// imageOf is the image of some programs under the references that the host looks for: with the versions that the programs say they have.
func imageOf(needed []host.Program, found []programs.Found) *bundle.Programs {
	made := &bundle.Programs{Files: map[string]string{}}
	for i, p := range needed {
		ref := p.Image
		if says := found[i].Version; says != "" && says != p.Version {
			repository, _, _ := strings.Cut(p.Image, ":")
			tag := says
			if p.Name == "etcd" { // as Kubernetes publishes it: without the v, and with a revision
				tag = strings.TrimPrefix(says, "v") + "-0"
			}
			ref = repository + ":" + tag
		}
		made.Refs = append(made.Refs, ref)
		made.Files[p.Path] = found[i].File
	}
	return made
}
