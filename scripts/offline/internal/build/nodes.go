package build

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/command"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/engine"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/node"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// nodes makes the images of machines and loads them into the engine. Where they cannot be made, the bundle is made
// without them: it then serves hosts that need no kind.
func (b *builder) nodes(ctx context.Context) error {
	if err := b.buildPrograms(ctx, recipe.Node); err != nil {
		return err
	}
	if err := node.Missing(); err != nil {
		b.report.Say("no node images on this machine, the rest is built:\n%v", err)
		return nil
	}
	kind, err := b.source(ctx, "peers", "sigs.k8s.io/kind")
	if err != nil {
		return err
	}
	n := node.Builder{Cache: b.cache, KindFiles: filepath.Join(kind, "images/base/files"), Programs: b.programs}
	machines, err := b.machineImages(ctx, n)
	if err != nil {
		return err
	}
	maps.Copy(b.images, machines)
	if b.NoLoad {
		return nil
	}
	return b.load(ctx, machines)
}

func (b *builder) machineImages(ctx context.Context, n node.Builder) (map[string]v1.Image, error) {
	debian, err := n.Debian(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]v1.Image{}
	if err := b.programImages(ctx, recipe.NodeImages, own); err != nil {
		return nil, err
	}
	if own[recipe.ProxyImage.Ref], err = n.Proxy(ctx, debian); err != nil {
		return nil, err
	}
	if err := b.checkKubeadm(ctx, own); err != nil {
		return nil, err
	}
	machines := map[string]v1.Image{}
	if machines[recipe.HAProxyImage], err = n.HAProxy(ctx, debian); err != nil {
		return nil, err
	}
	if machines[recipe.NodeImage], err = n.Image(ctx, "image-node", debian, own); err != nil {
		return nil, err
	}
	full := maps.Clone(own)
	maps.Copy(full, b.baked)
	machines[recipe.FullImage], err = n.Image(ctx, "image-node-full", debian, full)
	return machines, err
}

// checkKubeadm holds the names of a node's images to what kubeadm will look for.
func (b *builder) checkKubeadm(ctx context.Context, images map[string]v1.Image) error {
	out, err := command.Command{
		Args: []string{b.programs["kubernetes"], "kubeadm", "config", "images", "list", "--kubernetes-version", recipe.Kubernetes},
	}.Run(ctx)
	if err != nil {
		return err
	}
	for ref := range strings.FieldsSeq(out) {
		if _, ok := images[ref]; !ok {
			return fmt.Errorf("kubeadm needs the image %s, which the recipe does not make: change internal/recipe/images.go", ref)
		}
	}
	return nil
}

// load gives the engine the images that it does not have yet.
func (b *builder) load(ctx context.Context, images map[string]v1.Image) error {
	e, err := engine.Find(ctx)
	if err != nil {
		b.report.Say("the node images are built but not loaded: %v", err)
		return nil
	}
	for ref, img := range images {
		if err := b.loadOne(ctx, e, ref, img); err != nil {
			return fmt.Errorf("load %s into %s: %w", ref, e.Name(), err)
		}
	}
	return nil
}

func (b *builder) loadOne(ctx context.Context, e engine.Engine, ref string, img v1.Image) (err error) {
	has, err := e.Has(ctx, ref, img)
	if has || err != nil {
		return err
	}
	step := b.report.Start("load " + ref + " into " + e.Name())
	defer func() { step.End(err) }()
	temp, err := os.MkdirTemp(filepath.Join(b.cache.Dir(), "tmp"), "load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	return e.Load(ctx, func(w io.Writer) error {
		return node.WriteArchive(ctx, w, map[string]v1.Image{ref: img}, filepath.Join(temp, "bundle"))
	})
}
