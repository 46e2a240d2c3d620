package cmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// clusterAddOptions are the flags of cluster add.
type clusterAddOptions struct {
	fleetrepo.AddOptions
	changeFlags
	set        []string
	valuesFile string
}

func newClusterAddCmd(f *factory) *cobra.Command {
	o := &clusterAddOptions{}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Declare a cluster",
		Long: `Declare a cluster: write its cluster.yaml, which is a HelmRelease of the flavour's chart, and add the chart if the repo lacks
it. The command also writes a flux.yaml. Once the cluster's API server answers, the management cluster installs Flux on the cluster and
points it at the manifests of the environment. With --flux remote, the management cluster's own Flux applies these manifests.

The control plane and the pools start as in the chart's example. If the chart needs a value that only you know, such as a region, the error
names the flag that sets it. The result is checked against the chart's values.schema.json, and rendered.` + editing,
		Example: `  fleetctl cluster add demo --flavour in-memory --environment dev
  fleetctl cluster add shop --flavour aws-eks --environment prod --set region=eu-central-1 --set pools[0].replicas=5 --push
  fleetctl cluster add edge-7 --flavour vsphere-kubeadm --environment edge --values edge.yaml --dry-run`,
		RunE: running(f, o, runEdit),
	}
	f.addManagement(c)
	doesWithout(c, findsOne)
	fs := c.Flags()
	fs.StringVar(&o.Flavour, "flavour", "", "chart of the cluster: a folder of charts/, or one that fleetctl brings along")
	fs.StringVar(&o.Environment, "environment", "", "environment of the cluster (default: the only one of the fleet)")
	fs.StringVar(&o.KubernetesVersion, "version", "",
		"Kubernetes version (also: --kubernetes-version; default: the management cluster's version, or the version in the chart's example)")
	alsoCalled(c, "version", "kubernetes-version")
	fs.StringArrayVar(&o.set, "set", nil, "value of the chart, path=value: region=eu-central-1, pools[0].replicas=3; repeat for several")
	addFluxFlags(f, c, (*string)(&o.Flux), &o.CNI, "own, if the flavour can run Flux",
		"the network that the flavour names, or the only one")
	fs.StringVar(&o.valuesFile, "values", "", "YAML file with values of the chart; - is standard input")
	o.changeFlags.add(c)
	takes(f, c, argument{what: "cluster"})
	completeFlag(c, "flavour", f.completeFrom(-1, func(r *fleetrepo.Repo, _ []string) []string { return r.FlavoursToOffer() }))
	completeFlag(c, "environment", f.completeFrom(-1, environmentNames))
	return c
}

// complete reads the files that flags name. For a missing flag it takes the only choice, or asks at a terminal.
func (o *clusterAddOptions) complete(f *factory, args ...string) error {
	o.Name = args[0]
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	o.ManagementCluster = f.flags.management
	if o.Set, err = fleetrepo.ParseAssignments(o.set); err != nil {
		return err
	}
	if o.valuesFile != "" {
		content, err := readInput(f, o.valuesFile, "the values", "--values")
		if err != nil {
			return err
		}
		if o.Values, err = fleetrepo.ParseValues(o.valuesFile, content); err != nil {
			return err
		}
	}
	if o.Flavour == "" {
		if o.Flavour, err = ui.Choose(f.streams, "Flavour of the cluster", repo.FlavoursToOffer(), "--flavour"); err != nil {
			return err
		}
	}
	if environments := repo.EnvironmentNames(); o.Environment == "" && len(environments) == 0 {
		return diag.Errorf("`fleetctl environment add dev` makes one", "the fleet has no environment")
	} else if o.Environment == "" {
		if o.Environment, err = ui.Choose(f.streams, "Environment of the cluster", slices.Clone(environments), "--environment"); err != nil {
			return err
		}
	}
	if !f.streams.InTerminal {
		return nil // the edit reports a missing value
	}
	return o.askValues(f, repo)
}

func (o *clusterAddOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return r.Add(o.AddOptions)
}

// askValues asks for values that the flavour requires, such as a region.
func (o *clusterAddOptions) askValues(f *factory, repo *fleetrepo.Repo) error {
	_, err := repo.Add(o.AddOptions)
	missing, ok := errors.AsType[*fleetrepo.MissingValuesError](err)
	if !ok {
		return nil // the edit reports every other error
	}
	for _, value := range missing.Values {
		answer, askErr := ui.Ask(f.streams, fmt.Sprintf("Value for %s (for example %v)", value.Path, value.Value),
			missing.Error(), diag.Hint(err))
		if askErr != nil {
			return askErr
		}
		given := []fleetrepo.Assignment{{Path: value.Path, Value: answer}}
		if _, isText := value.Value.(string); !isText {
			if given, err = fleetrepo.ParseAssignments([]string{value.Path.String() + "=" + answer}); err != nil {
				return err
			}
		}
		o.Set = append(o.Set, given...)
	}
	return nil
}

// readInput reads the file that a flag names, or standard input for -.
func readInput(f *factory, name, what, flag string) ([]byte, error) {
	var content []byte
	var err error
	if name == "-" {
		content, err = within.All(f.streams.In, "standard input", within.MostNamed)
	} else {
		content, err = within.Given(filepath.Clean(name), within.MostNamed)
	}
	hint := "give " + flag + " a file that you can read"
	if errors.Is(err, within.ErrTooLarge) {
		hint = "give " + flag + " a smaller file"
	}
	return content, diag.Wrap("read "+what, err, hint)
}
