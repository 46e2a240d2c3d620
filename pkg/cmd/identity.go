package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newIdentityCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "identity", Short: "List, add and remove identities, by which clusters access a cloud without their own keys",
		Long: `An identity is a provider's object that holds access to a cloud: a role or an access key on AWS, a managed identity
or a service principal on Azure, a user of vCenter. Clusters name it, and the identity lists the namespaces whose clusters may use it.`,
	}
	c.AddCommand(newIdentityAddCmd(f), newIdentityListCmd(f), newIdentityRemoveCmd(f))
	return c
}

func newIdentityListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "identity", "List the identities, and whose clusters may use them", (*fleetrepo.Repo).Identities, views.Identities)
}

// identityRemoveOptions are the flags of identity remove.
type identityRemoveOptions struct {
	changeFlags
	name, management, provider string
}

func (o *identityRemoveOptions) complete(f *factory, args ...string) error {
	o.management, o.name = f.flags.management, args[0]
	return nil
}

func (o *identityRemoveOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.RemoveIdentity(o.management, o.provider, o.name)
}

func newIdentityRemoveCmd(f *factory) *cobra.Command {
	o := &identityRemoveOptions{}
	c := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an identity that no cluster uses",
		Long: `Remove an identity from the configuration of its management cluster. An identity that a cluster still refers to is not removed.
What you made for it in the cloud stays there.` + editing,
		Example: "  fleetctl identity remove staging --dry-run",
		RunE:    running(f, o, runEdit),
	}
	c.Flags().StringVar(&o.provider, "provider", "", "cloud's provider, where several identities have the name")
	f.addManagement(c)
	o.add(c)
	takes(f, c, argument{what: "identity", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.IdentityNames() }})
	return c
}

// identityAddOptions are the flags of identity add.
type identityAddOptions struct {
	changeFlags
	management string
	identity   scaffold.IdentityOptions
	// cloudSide is the file for the cloud's configuration. Empty means to print it.
	cloudSide string
}

func (o *identityAddOptions) complete(f *factory, args ...string) error {
	o.management, o.identity.Name = f.flags.management, args[0]
	return o.identity.Check()
}

func (o *identityAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddIdentity(o.management, o.identity)
}

func runIdentityAdd(ctx context.Context, f *factory, o *identityAddOptions) error {
	documents, err := scaffold.CloudSide(o.identity)
	if err != nil {
		return err
	}
	if err := runEdit(ctx, f, o); err != nil {
		return err
	}
	if o.cloudSide == "" || o.dryRun {
		var text strings.Builder
		for _, d := range documents {
			text.WriteString(d.String())
		}
		ui.FprintText(f.streams.Err, "\nFor the cloud (--cloud-side FILE writes it to a file):\n\n"+text.String())
		return nil
	}
	for _, d := range documents {
		file := d.File(o.cloudSide)
		if err := atomicfile.Write(file, []byte(d.Content), 0o600); err != nil {
			return diag.Wrap("write the cloud's side", err, "give --cloud-side a file in an existing folder")
		}
		if d.Title != "" {
			ui.FprintText(f.streams.Err, file+": "+d.Title)
		}
	}
	return nil
}

func newIdentityAddCmd(f *factory) *cobra.Command {
	o := &identityAddOptions{identity: scaffold.IdentityOptions{ObjectNamespace: "azure-identities"}}
	options := &o.identity
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add an identity to a management cluster, and show what to apply in the cloud",
		Long: `Add an identity to the configuration of a management cluster, for the clusters of the given environments or namespaces only.
The command prints what you have to apply yourself: a trust policy on AWS, federated credentials on Azure, the Secret on vSphere. With
--issuer, the identity needs no key: give the public address of the management cluster's service account issuer ("fleetctl host issuer
export" writes the files to publish there).

With --secret, the identity of AWS has an access key, and that of Azure is a service principal. The identity only names the Secret; the
command prints the Secret with places to fill in, to be encrypted before it is committed ("fleetctl secret encrypt").` + editing,
		Example: `  fleetctl identity add staging --provider aws --environment staging --role-arn arn:aws:iam::111122223333:role/fleet-staging
  fleetctl identity add staging --provider azure --environment staging --tenant-id … --client-id … --issuer https://oidc.example.com/mgmt
  fleetctl identity add legacy --provider aws --environment staging --secret legacy-key --cloud-side ../legacy-key.yaml
  fleetctl identity add dc1 --provider vsphere --namespace team-a,team-b --secret dc1-user --cloud-side dc1-secret.yaml`,
		RunE: running(f, o, runIdentityAdd),
	}
	fs := c.Flags()
	fs.StringVar(&options.Provider, "provider", "", "cloud's provider: aws, azure or vsphere (required)")
	fs.StringSliceVar(&options.Environments, "environment", nil, "environments whose clusters may use it")
	fs.StringSliceVar(&options.Namespaces, "namespace", nil, "namespaces whose clusters may use it")
	fs.StringVar(&options.RoleARN, "role-arn", "", "AWS: role of the identity")
	fs.StringVar(&options.ExternalID, "external-id", "", "AWS: external ID that is needed to assume the role")
	fs.StringVar(&options.TrustedARN, "trusted-arn", "",
		"AWS: principal that may assume the role (default: controllers.cluster-api-provider-aws.sigs.k8s.io of the same account)")
	fs.StringVar(&options.TenantID, "tenant-id", "", "Azure: the tenant")
	fs.StringVar(&options.ClientID, "client-id", "", "Azure: the client id of the managed identity or service principal")
	fs.StringVar(&options.Type, "type", "",
		"Azure: type of the identity (default: ServicePrincipal with --secret, else WorkloadIdentity)")
	fs.StringVar(&options.ObjectNamespace, "object-namespace", options.ObjectNamespace, "Azure: namespace of the object itself")
	fs.StringVar(&options.SecretName, "secret", "",
		"Secret with vSphere's user and password, AWS's access key, or the password or certificate of Azure's service principal")
	fs.StringVar(&options.Issuer, "issuer", "", "AWS, Azure: address of the issuer of the management cluster's service accounts")
	fs.StringVar(&o.cloudSide, "cloud-side", "",
		"write what the cloud needs to this file instead of showing it; a second document goes to a file of a similar name")
	completeFlag(c, "provider", cobra.FixedCompletions(scaffold.IdentityProviders(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "type", cobra.FixedCompletions(scaffold.AzureIdentityTypes(), cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	f.addManagement(c)
	o.add(c)
	takes(f, c, argument{what: "identity"})
	return c
}
