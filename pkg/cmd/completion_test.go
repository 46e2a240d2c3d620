package cmd

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/ui"
)

// freeText are flags with files, which a shell completes, and flags whose values only the user knows: "FLAG", or "COMMAND --FLAG" where
// other commands complete a flag of that name. All other flags with a text complete it.
var freeText = []string{
	"address", "age-key-file", "branch", "bundle", "chart", "client-id", "cloud", "cloud-side", "commits-since", "crds", "dir",
	"etcd-releases", "external-id", "file", "fleet", "flux-token-file", "flux-username", "from", "from-file", "from-literal", "generation",
	"git-branch", "git-ca-file", "git-token-file", "git-url", "git-username", "group", "host-kubeconfig", "image", "issuer",
	"kubeconfig", "kubeconfig-out", "kubernetes-releases", "manifest-dir", "name", "namespace", "node-image", "object-namespace",
	"output-dir", "output-file", "own-flux-token-file", "own-git-token-file", "own-repo", "own-ssh-key-file", "path", "programs",
	"region", "role-arn", "secret", "secret-file", "semver", "set", "snapshot", "source", "ssh-key-file", "ssh-known-hosts",
	"support-bundle", "tag", "tenant-id", "to-kubeconfig", "trusted-arn", "values", "velero-namespace", "notification add --channel",
	"init --environment", "doctor --environment", "backup --to", "promote --to", "secret encrypt --type", "feature add --version",
}

func TestFlagsComplete(t *testing.T) {
	used := map[string]bool{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden { // an old name, which is an error
				return
			}
			if !slices.Contains([]string{"string", "stringSlice", "stringArray"}, flag.Value.Type()) {
				return
			}
			_, completes := c.GetFlagCompletionFunc(flag.Name)
			free := false
			for _, name := range []string{flag.Name, strings.TrimPrefix(c.CommandPath(), "fleetctl ") + " --" + flag.Name} {
				if slices.Contains(freeText, name) {
					used[name], free = true, true
				}
			}
			if !completes && !free {
				t.Errorf("%s --%s completes nothing: %s", c.CommandPath(), flag.Name, flag.Usage)
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(Root(ui.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
	for _, name := range freeText {
		if !used[name] {
			t.Errorf("no command has the flag %s: take it out of freeText", name)
		}
	}
}
