package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

var ofChart = argument{what: "chart", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.ChartNames() }}

func newChartAddCmd(f *factory) *cobra.Command {
	var o changeFlags
	var from string
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a chart of a cluster template, as clusterctl takes it",
		Long: `Make a chart of the team's own of a cluster template: the file that a provider releases for ` + "`clusterctl generate cluster`" + `. Its variables become
values: CLUSTER_NAME and NAMESPACE are the release's, KUBERNETES_VERSION is kubernetesVersion, CONTROL_PLANE_MACHINE_COUNT is
controlPlane.replicas, WORKER_MACHINE_COUNT is the size of a pool, and every other one has its name: OPENSTACK_CLOUD is openstackCloud. A variable without
a default is required.

What a chart cannot say is refused with its line. Secrets of the template are left out, because they would be in Git in clear: the chart's README
lists them. Nothing is downloaded but a template whose https address is given.` + editing,
		Example: `  fleetctl chart add openstack --from cluster-template.yaml --commit
  clusterctl generate yaml --from cluster-template.yaml --list-variables
  fleetctl cluster add shop --flavour openstack --environment dev --set openstackCloud=acme`,
		RunE: func(c *cobra.Command, args []string) error {
			if from == "" {
				return diag.Usage("give --from FILE, --from https://…, or --from - for standard input", "the template of the chart is missing")
			}
			name, content, err := readTemplate(c.Context(), f, from)
			if err != nil {
				return err
			}
			return edit(c, f, &o, func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddChart(args[0], name, content) })
		},
	}
	c.Flags().StringVar(&from, "from", "", "template of a cluster: a file, an https address, or - for standard input")
	o.add(c)
	takes(f, c, argument{what: "chart"})
	return c
}

// readTemplate reads what --from names, and returns what findings call it.
func readTemplate(ctx context.Context, f *factory, from string) (name string, content []byte, err error) {
	if strings.Contains(from, "://") {
		content, err = capi.DownloadTemplate(ctx, from)
		name, _, _ = strings.Cut(from, "?") // a query may be a credential
		return name, content, err
	}
	if name = from; from == "-" {
		name = "standard input"
	}
	content, err = readInput(f, from, "the cluster template", "--from")
	return name, content, err
}

func newChartRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a chart that no cluster is made of",
		Long:    "Remove a chart that no cluster is made of, with the HelmCharts that pack it for environments." + editing,
		Example: "  fleetctl chart remove openstack --dry-run",
	}, ofChart, (*fleetrepo.Repo).RemoveChart)
}
