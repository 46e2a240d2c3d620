package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/bundling"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/programs"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newBundleCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Make and inspect offline bundles",
		Long: `An offline bundle is one folder or file (.tar.zst) with everything that init needs: container images, provider components,
cert-manager, Flux's manifests, and Helm charts. It is an OCI image layout: a digest covers every byte.`,
	}
	c.AddCommand(newBundleCreateCmd(f), newBundleListCmd(f), newBundleVerifyCmd(f), newBundleExtractCmd(f))
	return c
}

// bundleCreateOptions are the flags of bundle create.
type bundleCreateOptions struct {
	initOptions
	bundle   bundling.CreateOptions
	releases programs.Releases
	// given tells whether a flag was given.
	given func(flag string) bool
}

func newBundleCreateCmd(f *factory) *cobra.Command {
	o := &bundleCreateOptions{}
	b := &o.bundle
	c := &cobra.Command{
		Use:   "create PATH",
		Short: "Make a bundle for a fleet.yaml, from registries and releases",
		Long: `Fill a bundle for the fleet.yaml in --repo: its providers, cert-manager, Flux, the node image if its version is given, and
all their images. For an embedded host the bundle also holds the images of etcd, kube-apiserver and kube-controller-manager. Without a
fleet.yaml, the bundle is for the fleet that init would write with the same flags. PATH is a folder, or a file that ends in .tar.zst.

For the clusters, the bundle holds the images of everything that Flux applies from the fleet repo: the networks in addons/cni, the enabled
features, and the features that --feature names. Helm charts that come from other places are included with their images. Add charts and
images that the repo does not name with --chart and --image.

With --from, content that another bundle already holds is copied from it. The programs of an embedded host come as images from
registry.k8s.io, or from its mirror in fleet.yaml. --programs FOLDER takes them from a folder instead. --programs releases downloads the
releases of Kubernetes and etcd, and verifies their checksums.

The command needs no provider credentials, and puts none into the bundle. After an interruption, the same command goes on where it
stopped.`,
		Example: `  fleetctl bundle create fleet-bundle.tar.zst --kubernetes-version v1.36.3
  fleetctl bundle create fleet-bundle.tar.zst --chart oci://ghcr.io/stefanprodan/charts/podinfo:6.9.0 \
    --image ghcr.io/stefanprodan/podinfo:6.9.0
  fleetctl bundle create next.tar.zst --from fleet-bundle.tar.zst      # fetches only new content
  fleetctl bundle create fleet-bundle.tar.zst --host embedded --provider docker --programs ./kubernetes-v1.36.3`,
		Args: cobra.ExactArgs(1),
		RunE: running(f, o, runBundleCreate),
	}
	o.given = c.Flags().Changed
	o.addFleetFlags(f, c)
	o.addHostType(c)
	fs := c.Flags()
	fs.StringVar(&b.From, "from", "", "another bundle to copy content from, before anything is downloaded")
	fs.StringVar(&b.Programs, "programs", "",
		"programs of an embedded host: a folder with etcd, kube-apiserver and kube-controller-manager, or the word releases (default: from "+
			"images)")
	fs.StringVar(&o.releases.Kubernetes, "kubernetes-releases", programs.KubernetesReleases,
		"where --programs releases finds Kubernetes")
	fs.StringVar(&o.releases.Etcd, "etcd-releases", programs.EtcdReleases, "where --programs releases finds etcd")
	fs.StringSliceVar(&b.Features, "feature", nil, "feature to include although no cluster has it yet; repeat for several")
	completeFlag(c, "feature", f.completeFrom(-1, featureNames))
	c.Flags().StringArrayVar(&b.Images, "image", nil, "a further image; repeat for several")
	c.Flags().StringArrayVar(&b.Charts, "chart", nil,
		"a Helm chart, the file of its archive or oci://REGISTRY/PATH:VERSION; repeat for several")
	c.Flags().StringVar(&b.Architecture, "arch", "", "architecture of the images: amd64 or arm64 (default: this machine's)")
	return c
}

func (o *bundleCreateOptions) complete(f *factory, args ...string) error {
	if err := o.initOptions.complete(f); err != nil {
		return err
	}
	o.bundle.Options, o.bundle.Output = o.Options, args[0]
	if o.bundle.Programs == "releases" {
		o.bundle.Programs, o.bundle.Releases = "", &o.releases
	} else if o.given("kubernetes-releases") || o.given("etcd-releases") {
		return diag.Usage("give --programs releases as well",
			"--kubernetes-releases and --etcd-releases say where --programs releases finds them")
	}
	return nil
}

func runBundleCreate(ctx context.Context, f *factory, o *bundleCreateOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := bundling.Create(ctx, deps, o.bundle)
	if err != nil {
		return err
	}
	return f.showBundle(result)
}

func newBundleListCmd(f *factory) *cobra.Command {
	return listFormats(&cobra.Command{
		Use:     "list PATH",
		Short:   "List the content of a bundle",
		Example: "  fleetctl bundle list fleet-bundle.tar.zst -o wide",
		Args:    cobra.ExactArgs(1),
		RunE:    running(f, &named{}, runBundleList),
	})
}

func runBundleList(ctx context.Context, f *factory, bundle *named) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := bundling.List(ctx, deps, bundle.name)
	if err != nil {
		return err
	}
	return f.showBundle(result)
}

func newBundleExtractCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "extract PATH FOLDER [NAME…]",
		Short: "Write files of a bundle, such as its charts, to a folder",
		Long: `Write the files of a bundle to a folder: all of them, or those at or below each NAME (bundle list shows the names). Every digest is
checked before anything is written. Images are not files: init loads them.`,
		Example: "  fleetctl bundle extract fleet-bundle.tar.zst . charts",
		Args:    cobra.MinimumNArgs(2),
		RunE:    running(f, &bundleExtractOptions{}, runBundleExtract),
	}
}

// bundleExtractOptions are the arguments of bundle extract.
type bundleExtractOptions struct {
	bundle, folder string
	names          []string
}

func (o *bundleExtractOptions) complete(_ *factory, args ...string) error {
	o.bundle, o.folder, o.names = args[0], args[1], args[2:]
	return nil
}

func runBundleExtract(ctx context.Context, f *factory, o *bundleExtractOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := bundling.Extract(ctx, deps, o.bundle, o.folder, o.names)
	if err != nil {
		return err
	}
	return f.showBundle(result)
}

func newBundleVerifyCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH",
		Short: "Recompute every digest of a bundle",
		Args:  cobra.ExactArgs(1),
		RunE:  running(f, &named{}, runBundleVerify),
	}
}

func runBundleVerify(ctx context.Context, f *factory, bundle *named) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	result, err := bundling.Verify(ctx, deps, bundle.name)
	if err != nil {
		return err
	}
	f.closeReporter()
	return f.show(views.BundleVerified(result))
}

func (f *factory) showBundle(r *bundling.Result) error {
	f.closeReporter()
	return f.show(views.Bundle(r))
}
