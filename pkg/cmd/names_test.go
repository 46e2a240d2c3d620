package cmd

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Every flag that names an object of the fleet repo refuses a mistyped name before anything else, and says which name was meant.
func TestUnknownNamesInFlags(t *testing.T) {
	isolate(t)
	typos := map[string]struct{ name, meant string }{
		"environment": {"prdo", "did you mean prod? There are: dev, prod"},
		"flavour":     {"aws-kubedm", "did you mean aws-kubeadm? There are: aws-eks, aws-kubeadm"},
		"feature":     {"ingres", "`fleetctl feature add` makes one"},
		"tenant":      {"shpo", "`fleetctl tenant add` makes one"},
		"cluster":     {"shpo", "did you mean shop? There are: office, office-dev, shop, shop-dev"},
	}
	checked := map[string]int{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		for flag, typo := range typos {
			if !c.Runnable() || c.LocalNonPersistentFlags().Lookup(flag) == nil {
				continue
			}
			checked[flag]++
			line := append([]string{"-C", exampleRepo}, strings.Fields(c.CommandPath())[1:]...)
			line = append(line, "--"+flag, typo.name)
			if err := withArguments(t, typo.name, line); diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), typo.meant) {
				t.Errorf("%s --%s %s: %v (%s)", c.CommandPath(), flag, typo.name, err, diag.Hint(err))
			}
		}
	}
	_, f, _ := parsed(t, "", "version")
	walk(f.root)
	for flag, least := range map[string]int{"environment": 15, "flavour": 2, "feature": 1, "tenant": 2, "cluster": 4} {
		if checked[flag] < least {
			t.Errorf("only %d commands have --%s", checked[flag], flag)
		}
	}
}

// withArguments runs a command with as many arguments as it takes, until its error is about a name.
func withArguments(t *testing.T, name string, line []string) (err error) {
	t.Helper()
	for range 4 {
		if _, _, err = parsed(t, "", line...); err != nil && strings.Contains(err.Error(), name) {
			return err
		}
		line = append(line, "x")
	}
	return err
}

// A pool of a mistyped cluster is not asked for its size first.
func TestUnknownClusterOfAPool(t *testing.T) {
	isolate(t)
	for _, verb := range []string{"add", "scale"} {
		_, _, err := parsed(t, "", "-C", exampleRepo, "pool", verb, "shpo", "general")
		if diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), "did you mean shop? There are: office") {
			t.Errorf("pool %s: %v (%s)", verb, err, diag.Hint(err))
		}
	}
}

// A command about a workload cluster of any management cluster does not ask for the management cluster of a mistyped name.
func TestUnknownWorkloadCluster(t *testing.T) {
	isolate(t)
	for _, line := range []string{
		"status shpo", "why shpo", "kubeconfig shpo/shpo", "cluster drain shpo", "cluster detach prod/shpo", "pivot --to shpo",
		"bootstrap --pivot-to shpo",
	} {
		hint, err := refused(t, line)
		if diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), "declares no cluster") ||
			!strings.Contains(strings.ToLower(hint), "there are: office, office-dev, shop, shop-dev") ||
			!strings.Contains(hint, "--management: mgmt-aws, mgmt-azure") {
			t.Errorf("%s: %v (%s)", line, err, hint)
		}
		line = strings.ReplaceAll(line, "shpo", "shop")
		if _, err := refused(t, line); err != nil && strings.Contains(err.Error(), "declares no cluster") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// refused runs a command that cannot go far, because no management cluster of its fleet was made.
func refused(t *testing.T, line string) (hint string, err error) {
	t.Helper()
	f := newFactory(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	root := newRootCmd(f)
	root.SetArgs(append([]string{"--state-dir", t.TempDir(), "--cache-dir", t.TempDir(), "-C", exampleRepo}, strings.Fields(line)...))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	err = root.ExecuteContext(t.Context())
	return diag.Hint(err), err
}
