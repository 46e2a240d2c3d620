package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

var ofChart = argument{what: "chart", choices: func(r *fleetrepo.Repo, _ []string) []string { return r.ChartNames() }}

// chartAddOptions are the flags of chart add.
type chartAddOptions struct {
	changeFlags
	named
	from string
	// content of the template; nil if it has to be downloaded.
	content []byte
}

// complete reads the template, unless it has to be downloaded.
func (o *chartAddOptions) complete(f *factory, args ...string) (err error) {
	switch {
	case o.from == "":
		return diag.Usage("give --from FILE, --from https://…, or --from - for standard input", "the template of the chart is missing")
	case !o.isRemote():
		if o.content, err = readInput(f, o.from, "the cluster template", "--from"); err != nil {
			return err
		}
	}
	return o.named.complete(f, args...)
}

func (o *chartAddOptions) isRemote() bool { return strings.Contains(o.from, "://") }

// title is the name of the template in findings. It leaves out a URL's query, which may be a credential.
func (o *chartAddOptions) title() string {
	if o.from == "-" {
		return "standard input"
	}
	if o.isRemote() {
		title, _, _ := strings.Cut(o.from, "?")
		return title
	}
	return o.from
}

func runChartAdd(ctx context.Context, f *factory, o *chartAddOptions) (err error) {
	content := o.content
	if o.isRemote() {
		if content, err = releases.DownloadTemplate(ctx, o.from); err != nil {
			return err
		}
	}
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		return r.AddChart(o.name, o.title(), content)
	}})
}

func newChartAddCmd(f *factory) *cobra.Command {
	o := &chartAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a chart from a cluster template for clusterctl",
		Long: `Make a chart from a cluster template: the file that a provider releases for ` + "`clusterctl generate cluster`" + `.
The chart belongs to the team. The variables of the template become values. CLUSTER_NAME and NAMESPACE
are the name and namespace of the release, KUBERNETES_VERSION is kubernetesVersion, CONTROL_PLANE_MACHINE_COUNT is
controlPlane.replicas, and WORKER_MACHINE_COUNT is the size of a pool. Every other variable becomes a value
named after it: OPENSTACK_CLOUD becomes openstackCloud. A variable without a default becomes a required value.

The command refuses a template that a chart cannot express, and names the line. It leaves out the Secrets of the template, because Git would
hold them in clear: the chart's README lists them. It downloads nothing except a template from an https address.` + editing,
		Example: `  fleetctl chart add openstack --from cluster-template.yaml --commit
  clusterctl generate yaml --from cluster-template.yaml --list-variables
  fleetctl cluster add shop --flavour openstack --environment dev --set openstackCloud=acme`,
		RunE: running(f, o, runChartAdd),
	}
	c.Flags().StringVar(&o.from, "from", "", "template of a cluster: a file, an https address, or - for standard input")
	o.add(c)
	takes(f, c, argument{what: "chart"})
	return c
}

func newChartRemoveCmd(f *factory) *cobra.Command {
	return newRemoveCmd(f, &cobra.Command{
		Short:   "Remove a chart that no cluster uses",
		Long:    "Remove a chart that no cluster uses, with the HelmCharts that pack it for environments." + editing,
		Example: "  fleetctl chart remove openstack --dry-run",
	}, ofChart, (*fleetrepo.Repo).RemoveChart)
}
