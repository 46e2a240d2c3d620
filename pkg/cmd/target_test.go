package cmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
)

// A command about one workload cluster asks nobody for the management cluster that the fleet repo says.
func TestTargetOfAWorkloadCluster(t *testing.T) {
	isolate(t)
	targetOf := func(o any) *management.Target {
		switch o := o.(type) {
		case *clusterDrainOptions:
			return o.Target
		case *clusterDetachOptions:
			return o.Target
		}
		return nil
	}
	for _, command := range []string{"cluster drain", "cluster detach"} {
		for args, want := range map[string]string{
			"shop": "mgmt-aws", "prod/shop": "mgmt-aws", "office": "mgmt-azure", "shop --management mgmt-azure": "mgmt-azure",
			"shop --kubeconfig x": "mgmt-aws", "office --context x": "mgmt-azure",
		} {
			o, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(command+" "+args)...)...)
			if err != nil {
				t.Errorf("%s %s: %v", command, args, err)
				continue
			}
			if got := targetOf(o); got == nil || got.Name != want {
				t.Errorf("%s %s: %+v, want %s", command, args, got, want)
			}
		}
		// The fleet repo does not say it of a cluster that it does not declare any more.
		_, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(command+" gone")...)...)
		if err == nil || diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), "--management") {
			t.Errorf("%s gone: %v (%s)", command, err, diag.Hint(err))
		}
	}
}

// Every command that takes a management cluster refuses a name that neither fleet.yaml nor this machine knows, and says which there are.
func TestUnknownManagementCluster(t *testing.T) {
	isolate(t)
	checked := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Flags().Lookup("management") == nil || !c.Runnable() {
			return
		}
		checked++
		if err := withTypo(t, c); !errors.Is(err, v1alpha1.ErrNoManagementCluster) || diag.Code(err) != diag.ExitUsage ||
			!strings.Contains(diag.Hint(err), "did you mean mgmt-aws? There are: mgmt-aws, mgmt-azure") {
			t.Errorf("%s: %v (%s)", c.CommandPath(), err, diag.Hint(err))
		}
	}
	_, f, _ := parsed(t, "", "version")
	walk(f.root)
	if checked < 30 {
		t.Errorf("only %d commands take a management cluster", checked)
	}
}

// withTypo runs a command with a mistyped management cluster, and with as many arguments as the command takes.
func withTypo(t *testing.T, c *cobra.Command) (err error) {
	t.Helper()
	line := append([]string{"-C", exampleRepo, "--management", "mgmt-asw"}, strings.Fields(c.CommandPath())[1:]...)
	if c.Flags().Lookup("now") != nil { // the flag has no effect without
		line = append(line, "--now")
	}
	for range 4 {
		if _, _, err = parsed(t, "", line...); errors.Is(err, v1alpha1.ErrNoManagementCluster) {
			return err
		}
		line = append(line, "x")
	}
	return err
}
