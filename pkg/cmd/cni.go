package cmd

import (
	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/views"
)

func newCNICmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use: "cni", Short: "List, add and remove pod networks for clusters",
		Long: `A network is a folder of addons/cni with its manifests. The management cluster's Flux applies it to a cluster before anything
else runs there. The annotation fleetctl.dev/cni of a chart names the network for new clusters of its flavour.`,
	}
	c.AddCommand(newCNIAddCmd(f), newCNIListCmd(f), newCNIRemoveCmd(f))
	return c
}

// cniAddOptions are the flags of cni add.
type cniAddOptions struct {
	changeFlags
	named
	network fleetrepo.NetworkOptions
	from    string
}

func (o *cniAddOptions) complete(f *factory, args ...string) (err error) {
	o.name = args[0]
	if o.from != "" {
		o.network.Files, err = change.ReadManifests(o.from, o.name, f.streams.In)
	}
	return err
}

func (o *cniAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.AddNetwork(o.name, o.network)
}

func newCNIAddCmd(f *factory) *cobra.Command {
	o := &cniAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a pod network, and choose it for flavours",
		Long: `Copy the manifests of a network, or of a new version of it, into addons/cni/NAME, with a kustomization.yaml that lists them.
They are checked as ` + "`fleetctl validate`" + ` does: they have to build, and an API server has to accept every object.

With --flavour, new clusters of these flavours get this network: the annotation fleetctl.dev/cni in the repo's chart names it. Without
--from, the command chooses a network that the repo already has. Existing clusters keep their network: see ` + "`fleetctl cluster flux`" +
			`.` + editing,
		Example: `  fleetctl cni add calico --from calico.yaml --flavour aws-kubeadm --flavour vsphere-kubeadm --pr
  helm template cilium cilium/cilium --namespace kube-system | fleetctl cni add cilium --from - --dry-run
  fleetctl cni add cilium --flavour docker`,
		RunE: running(f, o, runEdit),
	}
	c.Flags().StringVar(&o.from, "from", "", "file or folder with the network's manifests; - is standard input")
	c.Flags().StringSliceVar(&o.network.Flavours, "flavour", nil, "flavour whose new clusters get it; repeat for several")
	completeFlag(c, "flavour", f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.Flavours() }))
	o.add(c)
	takes(f, c, argument{what: "network", command: "cni", choices: networkNames, open: true})
	return c
}

func newCNIRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short: "Remove a network that no cluster uses",
		Long: `Remove the manifests of a network that no cluster has. Charts that name this network for new clusters go back to the network
that fleetctl wrote.` + editing,
		Example: "  fleetctl cni remove calico --dry-run",
	}, argument{what: "network", command: "cni", choices: networkNames}, (*fleetrepo.Repo).RemoveNetwork)
}

func newCNIListCmd(f *factory) *cobra.Command {
	return newListCmd(f, "cni", "List the networks, the flavours that name them, and the clusters that use them",
		(*fleetrepo.Repo).Networks, views.Networks)
}

func networkNames(r *fleetrepo.Repo, _ []string) []string { return r.NetworkNames() }
