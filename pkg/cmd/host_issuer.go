package cmd

import (
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

func newHostIssuerExportCmd(f *factory) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the discovery document and the public keys of a management cluster's service accounts",
		Long: `Write the discovery document and the public keys of who issues the tokens of a management cluster's service accounts, as files to publish below the
issuer's address: on a web server, or in a bucket that everybody may read. There is nothing secret in them.

An embedded host issues tokens in the name of "serviceAccountIssuer" in fleet.yaml; without it no cloud could read it, and export says so.`,
		Example: `  fleetctl host issuer export --dir issuer
  aws s3 sync issuer s3://oidc-example-com/mgmt`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return diag.Usage("--dir issuer", "say by --dir which folder to write to")
			}
			target, err := f.target()
			if err != nil {
				return err
			}
			result, err := management.ExportIssuer(c.Context(), target, dir)
			if err != nil {
				return err
			}
			return f.show(views.Issuer(result))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder to write to (required)")
	f.addManagement(c)
	return c
}
