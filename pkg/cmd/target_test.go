package cmd

import (
	"strings"
	"testing"

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
