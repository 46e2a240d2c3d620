package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newBundleCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Make and look at offline bundles",
		Long: `An offline bundle is one folder or file (.tar.zst) with everything that init needs: container images, provider components, cert-manager,
Flux's manifests, and Helm charts. It is an OCI image layout; every byte hangs on a digest.`,
	}
	c.AddCommand(newBundleCreateCmd(f), newBundleListCmd(f), newBundleVerifyCmd(f), newBundleExtractCmd(f))
	return c
}

func newBundleCreateCmd(f *factory) *cobra.Command {
	o := &initOptions{}
	var b lifecycle.BundleOptions
	c := &cobra.Command{
		Use:   "create PATH",
		Short: "Fill a bundle, from registries and releases, for what fleet.yaml names",
		Long: `Fill a bundle for what fleet.yaml in --repo names: its providers, cert-manager, Flux, the node image where its version is given, and
all their images. Without a fleet.yaml it is for a fleet that init would write with the same flags. Charts and images that workload
clusters need are added with --chart and --image. PATH is a folder, or a file that ends in .tar.zst.

No credentials of providers are needed, and none get into the bundle. An interrupted run goes on where it was.`,
		Example: `  fleetctl bundle create fleet-bundle.tar.zst --kubernetes-version v1.36.3
  fleetctl bundle create fleet-bundle.tar.zst --chart oci://ghcr.io/stefanprodan/charts/podinfo:6.9.0 --image ghcr.io/stefanprodan/podinfo:6.9.0`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.complete(f); err != nil {
				return err
			}
			deps, err := f.deps()
			if err != nil {
				return err
			}
			b.InitOptions, b.Output = o.InitOptions, args[0]
			result, err := lifecycle.BundleCreate(c.Context(), deps, b)
			if err != nil {
				return err
			}
			return f.showBundle(result)
		},
	}
	o.addFleetFlags(f, c)
	c.Flags().StringArrayVar(&b.Images, "image", nil, "a further image; repeat for several")
	c.Flags().StringArrayVar(&b.Charts, "chart", nil, "a Helm chart, the file of its archive or oci://REGISTRY/PATH:VERSION; repeat for several")
	c.Flags().StringVar(&b.Architecture, "arch", "", "architecture of the images: amd64 or arm64 (default: this machine's)")
	return c
}

func newBundleListCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "list PATH",
		Short: "List what is in a bundle",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			deps, err := f.deps()
			if err != nil {
				return err
			}
			result, err := lifecycle.BundleList(c.Context(), deps, args[0])
			if err != nil {
				return err
			}
			return f.showBundle(result)
		},
	}
}

func newBundleExtractCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "extract PATH FOLDER [NAME…]",
		Short: "Write files of a bundle, such as its charts, to a folder",
		Long: `Write the files of a bundle to a folder: all of them, or those at or below each NAME (bundle list shows the names). Every digest is
checked before anything is written. Images are not files: init loads them.`,
		Example: "  fleetctl bundle extract fleet-bundle.tar.zst . charts",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			deps, err := f.deps()
			if err != nil {
				return err
			}
			result, err := lifecycle.BundleExtract(c.Context(), deps, args[0], args[1], args[2:])
			if err != nil {
				return err
			}
			return f.showBundle(result)
		},
	}
}

func newBundleVerifyCmd(f *factory) *cobra.Command {
	return &cobra.Command{
		Use:   "verify PATH",
		Short: "Recompute every digest of a bundle",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			deps, err := f.deps()
			if err != nil {
				return err
			}
			result, err := lifecycle.BundleVerify(c.Context(), deps, args[0])
			if err != nil {
				return err
			}
			f.closeReporter()
			return f.show(views.BundleVerified(result))
		},
	}
}

func (f *factory) showBundle(r *lifecycle.BundleResult) error {
	f.closeReporter()
	return f.show(views.Bundle(r))
}
