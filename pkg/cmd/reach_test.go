package cmd

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// TestReachOfEveryCommand: a command that takes --management and talks to the management cluster takes --kubeconfig and --context, too. A
// command without them has its reason here.
func TestReachOfEveryCommand(t *testing.T) {
	const (
		repo    = "it works on the fleet repo only"
		machine = "it works on a host of this machine"
		makes   = "it makes, moves or ends a management cluster, which this machine has to know first: fleetctl connect"
	)
	without := map[string]string{
		"bundle create": repo, "cluster add": repo, "cluster list": repo, "identity add": repo,
		"identity remove": repo, "pool list": repo, "provider add": repo, "provider list": repo, "provider remove": repo,
		"drill":       "it works on a snapshot, with a host of its own",
		"host delete": machine, "host issuer export": machine, "host logs": machine, "host start": machine, "host stop": machine,
		"bootstrap": makes, "init": makes, "pivot": makes, "restore": makes, "teardown": makes, "upgrade apply": makes,
	}
	found := map[string]bool{}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if !c.Runnable() || c.Flags().Lookup("management") == nil {
			return
		}
		found[path] = true
		reaches := c.Flags().Lookup("kubeconfig") != nil && c.Flags().Lookup("context") != nil
		if reason := without[path]; reaches == (reason != "") {
			t.Errorf("%s: it has --kubeconfig and --context: %t; the reason to have none: %q", path, reaches, reason)
		}
	}
	check(Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	for path := range without {
		if !found[path] {
			t.Errorf("no command %q takes --management", path)
		}
	}
}
