// Package bundling makes the offline bundle of a fleet, with everything that init needs without a network. It also lists, verifies and
// unpacks bundles.
package bundling

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/programs"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// CreateOptions say what `fleetctl bundle create` fills.
type CreateOptions struct {
	session.Options
	// Output is a folder, or a file that ends in .tar.zst.
	Output string
	// Images are added to what the fleet needs: workload clusters' images, those of charts.
	Images []string
	// Charts are Helm charts to add: files, or oci://registry/path:version.
	Charts []string
	// Architecture of the images; empty: this machine's.
	Architecture string
	// From is another bundle. Its content is copied instead of downloaded.
	From string
	// Programs is the folder with the programs of the host's control plane. If it is "", the programs come from Releases if that is set, else
	// from images.
	Programs string
	// Releases, if not nil, are where the programs of the host's control plane are downloaded.
	Releases *programs.Releases
	// Features are additional features of the fleet repo whose charts and images go into the bundle, besides the enabled features.
	Features []string
}

// Result says what is in the bundle.
type Result struct {
	FormatVersion string  `json:"formatVersion"`
	Path          string  `json:"path"`
	Entries       []Entry `json:"entries"`
}

// Entry is an image or a file of a bundle.
type Entry = bundle.Entry

// archiveSuffix marks a bundle in one file.
const archiveSuffix = ".tar.zst"

// Create fills an offline bundle with everything that init needs for the fleet: the providers' components and metadata, cert-manager,
// Flux's manifests, and all images. An interrupted run goes on where it stopped.
func Create(ctx context.Context, deps management.Deps, o CreateOptions) (*Result, error) {
	if err := checkOutput(o.Output); err != nil {
		return nil, err
	}
	ctx, cancel := steps.WithTimeout(ctx, o.Timeout)
	defer cancel()
	s, err := session.Read(ctx, deps, o.Options)
	if err != nil {
		return nil, steps.TimedOut(ctx, err)
	}
	defer s.Close()
	folder := o.Output
	if name, packed := strings.CutSuffix(o.Output, archiveSuffix); packed {
		folder = name + ".partial"
	}
	b := &creation{session: s, opts: o, folder: folder, files: map[string][]byte{}}
	defer b.done()
	if err := b.openFrom(ctx); err != nil {
		return nil, err
	}
	err = steps.Run(ctx, deps.Report, []steps.Step{
		{Name: "read provider components", Run: b.readProviders, Hint: "releases must be reachable"},
		{Name: "download Flux's manifests", Run: b.readFlux, Hint: "releases must be reachable"},
		{Name: "find the host's programs", Run: b.findPrograms},
		{Name: "render the fleet repo", Run: b.readRepo},
		{Name: "fill the bundle", Needs: []string{
			"read provider components", "download Flux's manifests", "find the host's programs",
			"render the fleet repo",
		}, Run: b.fill},
		{Name: "pack the bundle", Needs: []string{"fill the bundle"}, Done: b.isFolder, Run: b.pack},
	})
	if err != nil {
		return nil, err
	}
	made, err := bundle.Open(ctx, o.Output)
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }()
	return &Result{FormatVersion: "1", Path: o.Output, Entries: made.Index()}, nil
}

type creation struct {
	session     *session.Session
	opts        CreateOptions
	folder      string
	files       map[string][]byte
	provImages  []string
	fluxImages  []string
	fluxContent map[string][]byte
	// programs are the programs of the host's control plane, if they do not come as images. repoImages and repoCharts are the images and
	// charts that the fleet repo names.
	programs   *bundle.Programs
	repoImages []string
	repoCharts []bundle.Chart
	lock       *v1alpha1.Lock // of the fleet repo; nil where it has none
	// from is the bundle of opts.From, nil for none, and its files in a folder. cleanup is what is to be done in the end.
	from    *bundle.Bundle
	fromDir string
	cleanup []func() error
}

// readProviders takes the components as they were released: no variable is asked for, so a bundle is made without any credential and
// holds none.
func (b *creation) readProviders(ctx context.Context, detail func(string)) error {
	declared := components.DeclaredProviders(b.session.Mgmt.Providers)
	source, providers, err := b.resolveProviders(ctx, declared)
	if err != nil {
		return err
	}
	for _, p := range providers {
		detail(p.String())
		m, err := source.Components(ctx, p)
		if err != nil {
			return err
		}
		dir := path.Join("providers", p.Label(), m.Version)
		b.files[path.Join(dir, m.File)] = m.YAML
		b.files[path.Join(dir, "metadata.yaml")] = m.Metadata
	}
	certs, err := source.CertManager(ctx)
	if err != nil {
		return err
	}
	b.files[path.Join("cert-manager", certs.Version, "cert-manager.yaml")] = certs.YAML
	b.provImages, err = source.Images(ctx, providers)
	return err
}

// readFlux takes the release's own manifests, from which any choice of components can be made later.
func (b *creation) readFlux(ctx context.Context, _ func(string)) error {
	o := resolve.FluxOptions(b.session)
	base, err := b.fluxFrom(o.Version)
	if err != nil {
		return err
	}
	if base != nil {
		o.ManifestsBase = filepath.Join(b.fromDir, "flux", o.Version)
	} else if base, err = flux.ReleaseManifests(ctx, o.ReleasesURL, o.Version); err != nil {
		return err
	}
	b.fluxContent = map[string][]byte{}
	for name, content := range base {
		b.fluxContent[path.Join("flux", o.Version, name)] = content
	}
	chosen, err := flux.GenerateComponents(ctx, o)
	if err != nil {
		return err
	}
	for _, image := range chosen.Images {
		b.fluxImages = append(b.fluxImages, image.From)
	}
	return nil
}

func (b *creation) fill(ctx context.Context, _ func(string)) (err error) {
	w, err := bundle.Create(b.folder)
	if err != nil {
		return err
	}
	maps.Copy(b.files, b.fluxContent)
	images := slices.Concat(b.provImages, b.fluxImages, b.opts.Images, b.repoImages)
	if node := b.session.Traits().NodeImage; node != "" {
		images = append(images, node)
	}
	if b.programs == nil {
		for _, p := range hosts.Programs(b.session.Mgmt.Host, b.session.Mgmt.KubernetesVersion) {
			images = append(images, p.Image)
		}
	}
	slices.Sort(images)
	err = bundle.Fill(ctx, w, bundle.Sources{
		Images: slices.Compact(images), Files: b.files, Charts: b.opts.Charts, Fetched: b.repoCharts, Architecture: b.opts.Architecture,
		Programs: b.programs, From: b.from, Mirrors: hosts.Mirrors(b.session.Mgmt.Host),
	}, b.session.Deps.Report)
	if err != nil {
		w.Discard()
		return err
	}
	return w.Close()
}

func (b *creation) isFolder(context.Context) (string, bool, error) {
	return "the bundle is a folder", b.folder == b.opts.Output, nil
}

// pack makes one file of the folder, which is then not needed any more.
func (b *creation) pack(ctx context.Context, _ func(string)) error {
	if err := bundle.Pack(ctx, b.folder, b.opts.Output); err != nil {
		return err
	}
	return os.RemoveAll(b.folder)
}

// Extract writes files of the bundle at name to the folder dir: those at or below each of prefixes, or all.
func Extract(ctx context.Context, deps management.Deps, name, dir string, prefixes []string) (*Result, error) {
	made, err := bundle.Open(ctx, name, bundle.WithCache(filepath.Join(deps.CacheDir, "bundles")))
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }()
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	result := &Result{FormatVersion: "1", Path: dir, Entries: []bundle.Entry{}}
	for _, prefix := range prefixes {
		if err := made.WriteFiles(ctx, dir, prefix); err != nil {
			return nil, diag.Wrap("extract from the bundle "+name, err, "")
		}
		for _, e := range made.Files() {
			if bundle.Below(e.Name, prefix) && !slices.Contains(result.Entries, e) {
				result.Entries = append(result.Entries, e)
			}
		}
	}
	return result, nil
}

// List lists what is in the bundle at name.
func List(ctx context.Context, deps management.Deps, name string) (*Result, error) {
	made, err := bundle.Open(ctx, name, bundle.WithCache(filepath.Join(deps.CacheDir, "bundles")))
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }()
	return &Result{FormatVersion: "1", Path: name, Entries: made.Index()}, nil
}

// checkOutput refuses a name that asks for an archive of another format: it would become a folder of that name.
func checkOutput(name string) error {
	if strings.HasSuffix(name, archiveSuffix) {
		return nil
	}
	for _, other := range []string{".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".zst"} {
		if base, is := strings.CutSuffix(name, other); is {
			return diag.Usage("name a file that ends in "+archiveSuffix+", as in "+base+archiveSuffix+", or a folder",
				"%s: a bundle is no %s file", name, other)
		}
	}
	return nil
}

// Verify recomputes every digest of the bundle at name.
func Verify(ctx context.Context, deps management.Deps, name string) (*Result, error) {
	if err := bundle.CheckThere(name); err != nil {
		return nil, err
	}
	step := deps.Report.Start("verify " + name)
	result, err := verify(ctx, name)
	if err != nil {
		err = diag.Wrap(fmt.Sprintf("verify the bundle %s", name), err, "fetch or create it again")
		step.Fail(err)
		return nil, err
	}
	step.Done()
	return result, nil
}

func verify(ctx context.Context, name string) (*Result, error) {
	made, err := bundle.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }()
	if err := made.Verify(ctx); err != nil {
		return nil, err
	}
	return &Result{FormatVersion: "1", Path: name, Entries: made.Index()}, nil
}
