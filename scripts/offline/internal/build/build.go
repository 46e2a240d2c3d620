// Package build makes an offline bundle, step by step, out of the recipe.
package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/gobuild"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/report"
)

// The parts of a build that --only chooses from.
const (
	Bundle       = "bundle"        // the controllers' images and manifests
	Node         = "node"          // the kind node and load balancer images
	ControlPlane = "control-plane" // the programs of the embedded host's control plane, without images: for tests
	Flux         = "flux"          // Flux's controllers, without images: for tests
	Peers        = "peers"         // kind, clusterctl and helm
	Gitea        = "gitea"         // a Git forge
	Providers    = "providers"     // the bundle, with the clouds' infrastructure providers in it too
	// Before is the bundle, with an older release of every controller in it too, for tests of upgrades. Together with Providers, it has
	// older releases of the clouds' providers as well.
	Before = "before"
)

// Parts are all parts, and which of them a build makes when none is chosen.
var (
	Parts        = []string{Bundle, Node, ControlPlane, Flux, Peers, Gitea, Providers, Before}
	DefaultParts = []string{Bundle, Node}
)

// alone are the programs of parts that are programs and nothing else.
var alone = map[string][]recipe.Program{
	ControlPlane: recipe.ControlPlane,
	Flux:         slices.DeleteFunc(slices.Clone(recipe.Controllers), func(p recipe.Program) bool { return !p.Flux() }),
	Peers:        recipe.Peers,
	Gitea:        recipe.Forge,
}

// Options say what to build.
type Options struct {
	Source          string // the folder of scripts/offline
	Cache           string
	Out             string // the bundle's folder; empty stands for one in the cache
	Only            []string
	Clouds          []string // whose providers the part Providers has; empty stands for all
	ImageAutomation bool
	NoLoad          bool // do not load the node images into the engine
	CompileOnly     bool // compile the programs of the clouds' providers, and keep no other build waiting
}

// Build makes what o asks for.
func Build(ctx context.Context, o Options, r *report.Reporter) error {
	if err := o.complete(); err != nil {
		return err
	}
	if o.CompileOnly {
		return compileOnly(ctx, o, r)
	}
	c, err := cache.Open(ctx, o.Cache, r)
	if err != nil {
		return err
	}
	b := &builder{
		Options: o, cache: c, report: r,
		modules:  filepath.Join(o.Source, "modules"),
		programs: map[string]string{},
		images:   map[string]v1.Image{},
		baked:    map[string]v1.Image{},
		files:    map[string][]byte{},
	}
	if err := b.run(ctx); err != nil {
		_ = c.Close()
		return err
	}
	return c.Close()
}

// compileOnly compiles the programs of the clouds' providers: the minutes of a build that has them, without the lock that others wait for.
func compileOnly(ctx context.Context, o Options, r *report.Reporter) error {
	compiler := gobuild.Builder{Cache: cache.Look(o.Cache), Modules: filepath.Join(o.Source, "modules")}
	for _, p := range o.cloudPrograms() {
		step := r.Start("compile " + p.Name)
		err := compiler.Compile(ctx, p)
		step.End(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// cloudPrograms are the programs of the clouds' providers, with those of the releases before if the part Before is chosen, too.
func (o *Options) cloudPrograms() []recipe.Program {
	var programs []recipe.Program
	for _, cloud := range o.Clouds {
		programs = append(programs, recipe.CloudProviders[cloud]...)
		if slices.Contains(o.Only, Before) {
			programs = append(programs, recipe.CloudProvidersBefore[cloud]...)
		}
	}
	return programs
}

func (o *Options) complete() error {
	for _, part := range o.Only {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("--only %s: no such part; there are %s", part, strings.Join(Parts, ", "))
		}
	}
	if len(o.Only) == 0 {
		o.Only = DefaultParts
	}
	others := slices.ContainsFunc(o.Only, func(part string) bool { return part != Providers && part != Before })
	if o.CompileOnly && (others || !slices.Contains(o.Only, Providers)) {
		return fmt.Errorf("--compile-only is for --only %s and for --only %s,%s", Providers, Providers, Before)
	}
	for _, cloud := range o.Clouds {
		if !slices.Contains(recipe.Clouds, cloud) {
			return fmt.Errorf("--clouds %s: no such cloud; there are %s", cloud, strings.Join(recipe.Clouds, ", "))
		}
	}
	if len(o.Clouds) == 0 {
		o.Clouds = recipe.Clouds
	}
	var err error
	if o.Source, err = filepath.Abs(o.Source); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.Source, "modules")); err != nil {
		return fmt.Errorf("%s is not the folder scripts/offline of fleetctl's source: run there, or name it with --source", o.Source)
	}
	if o.Cache, err = filepath.Abs(o.Cache); err != nil {
		return err
	}
	if o.Out == "" {
		o.Out = filepath.Join(o.Cache, "bundle")
	}
	o.Out, err = filepath.Abs(o.Out)
	return err
}

type builder struct {
	Options
	cache   *cache.Cache
	report  *report.Reporter
	modules string

	programs map[string]string   // paths by name
	images   map[string]v1.Image // of the bundle, by reference
	baked    map[string]v1.Image // those that a full node image holds
	files    map[string][]byte   // of the bundle, by path
}

func (b *builder) run(ctx context.Context) error {
	wants := func(part string) bool { return slices.Contains(b.Only, part) }
	if err := b.expect(); err != nil {
		return err
	}
	for part, programs := range alone {
		if !wants(part) {
			continue
		}
		if err := b.buildPrograms(ctx, programs); err != nil {
			return err
		}
	}
	if !wants(Bundle) && !wants(Node) && !wants(Providers) && !wants(Before) {
		return nil
	}
	steps := []func(context.Context) error{b.controllers, b.controlPlane, b.manifests}
	if wants(Providers) {
		steps = append(steps, b.cloudProviders)
	}
	if wants(Before) {
		steps = append(steps, b.before)
	}
	if wants(Before) && wants(Providers) {
		steps = append(steps, b.cloudProvidersBefore)
	}
	if wants(Node) {
		steps = append(steps, b.nodes)
	}
	if wants(Bundle) || wants(Providers) || wants(Before) {
		steps = append(steps, b.bundle)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// expect tells how long it will take to build the programs that are not there yet.
func (b *builder) expect() error {
	var programs []recipe.Program
	for _, part := range b.Only {
		programs = append(programs, alone[part]...)
	}
	withNodes := slices.Contains(b.Only, Node)
	if withNodes || slices.ContainsFunc(b.Only, func(part string) bool { return part == Bundle || part == Providers || part == Before }) {
		programs = slices.Concat(programs, recipe.Controllers, recipe.ControlPlane)
		if b.ImageAutomation {
			programs = append(programs, recipe.ImageAutomation...)
		}
	}
	if withNodes {
		programs = append(programs, recipe.Node...)
	}
	if slices.Contains(b.Only, Before) {
		programs = append(programs, recipe.Before...)
	}
	if slices.Contains(b.Only, Providers) {
		programs = append(programs, b.cloudPrograms()...)
	}
	ahead, err := b.compiler().Ahead(programs)
	if err != nil {
		return err
	}
	b.report.Expect(ahead)
	return nil
}

func (b *builder) compiler() gobuild.Builder {
	return gobuild.Builder{Cache: b.cache, Modules: b.modules}
}

// buildPrograms builds one after the other: the compiler uses all processors itself.
func (b *builder) buildPrograms(ctx context.Context, programs []recipe.Program) error {
	for _, p := range programs {
		path, err := b.compiler().Build(ctx, p)
		if err != nil {
			return err
		}
		b.programs[p.Name] = path
	}
	return nil
}

// controllers makes the images of what runs in a management cluster.
func (b *builder) controllers(ctx context.Context) error {
	if err := b.buildPrograms(ctx, recipe.Controllers); err != nil {
		return err
	}
	if err := b.programImages(ctx, recipe.ControllerImages, b.images, b.baked); err != nil {
		return err
	}
	if !b.ImageAutomation {
		return nil
	}
	if err := b.buildPrograms(ctx, recipe.ImageAutomation); err != nil {
		return err
	}
	return b.programImages(ctx, recipe.ImageAutomationImages, b.images)
}

// before adds older releases of Cluster API, Flux and cert-manager, images and manifests, to the bundle.
func (b *builder) before(ctx context.Context) error {
	if err := b.buildPrograms(ctx, recipe.Before); err != nil {
		return err
	}
	if err := b.programImages(ctx, recipe.BeforeImages, b.images); err != nil {
		return err
	}
	return b.manifestsBefore(ctx)
}

// controlPlane makes the images of etcd and Kubernetes that the embedded host takes its programs from.
func (b *builder) controlPlane(ctx context.Context) error {
	if err := b.buildPrograms(ctx, recipe.ControlPlane); err != nil {
		return err
	}
	return b.programImages(ctx, recipe.ControlPlaneImages, b.images)
}
