package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newHostIssuerCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "issuer", Short: "Export the issuer of a management cluster's service account tokens",
		Long: `A cloud accepts the token of a provider's service account in place of a key, if it can read the keys of the token's issuer.`,
	}
	c.AddCommand(newHostIssuerExportCmd(f))
	return c
}

// hostIssuerExportOptions are the flags of host issuer export.
type hostIssuerExportOptions struct{ dir string }

func (o *hostIssuerExportOptions) complete(*factory, ...string) error {
	if o.dir == "" {
		return diag.Usage("give --dir issuer", "the folder to write to is missing")
	}
	return nil
}

func runHostIssuerExport(ctx context.Context, f *factory, o *hostIssuerExportOptions) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	result, err := management.ExportIssuer(ctx, target, o.dir)
	if err != nil {
		return err
	}
	return f.show(views.Issuer(result))
}

func newHostIssuerExportCmd(f *factory) *cobra.Command {
	o := &hostIssuerExportOptions{}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the discovery document and the public keys of a management cluster's service accounts",
		Long: `Write the OpenID discovery document and the public keys of a management cluster's service account issuer. Publish these files
below the issuer's address: on a web server, or in a public bucket. They hold no secrets.

An embedded host issues its tokens for the address "serviceAccountIssuer" in fleet.yaml. Without this address no cloud can read the keys,
and export fails.`,
		Example: `  fleetctl host issuer export --dir issuer
  aws s3 sync issuer s3://oidc-example-com/mgmt`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runHostIssuerExport),
	}
	c.Flags().StringVar(&o.dir, "dir", "", "folder to write to (required)")
	f.addManagement(c)
	return c
}
