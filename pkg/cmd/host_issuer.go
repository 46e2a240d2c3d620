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
		Use: "issuer", Short: "Export who issues the tokens of a management cluster's service accounts",
		Long: `Clouds let a provider in by the token of its service account, without any key, where they can read who issues such tokens.`,
	}
	c.AddCommand(newHostIssuerExportCmd(f))
	return c
}

// hostIssuerExportOptions are the flags of host issuer export.
type hostIssuerExportOptions struct{ dir string }

func (o *hostIssuerExportOptions) complete(*factory, ...string) error {
	if o.dir == "" {
		return diag.Usage("give --dir issuer", "say by --dir which folder to write to")
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
		Long: `Write the discovery document and the public keys of who issues the tokens of a management cluster's service accounts, as files to publish below the
issuer's address: on a web server, or in a bucket that everybody may read. There is nothing secret in them.

An embedded host issues tokens in the name of "serviceAccountIssuer" in fleet.yaml; without it no cloud could read it, and export says so.`,
		Example: `  fleetctl host issuer export --dir issuer
  aws s3 sync issuer s3://oidc-example-com/mgmt`,
		Args: cobra.NoArgs,
		RunE: running(f, o, runHostIssuerExport),
	}
	c.Flags().StringVar(&o.dir, "dir", "", "folder to write to (required)")
	f.addManagement(c)
	return c
}
