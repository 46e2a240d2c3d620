package cmd

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/hosts"
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
	"init --environment", "doctor --environment", "backup --to", "secret encrypt --type", "feature add --version",
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

// completed returns what completes the last word of a command line in a fleet repo, and the directive for the shell.
func completed(t *testing.T, dir string, line ...string) (words []string, directive string) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
	if code := Main(t.Context(), streams, slices.Concat([]string{cobra.ShellCompNoDescRequestCmd, "-C", dir}, line)); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	words = strings.Fields(out.String())
	return words[:len(words)-1], words[len(words)-1]
}

// Versions are those that the fleet and fleetctl know. Nothing is an error, and no shell offers files instead.
func TestVersionsComplete(t *testing.T) {
	isolate(t)
	empty, fleet := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"fleet.yaml": `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: acme
spec:
  environments:
  - name: dev
  managementClusters:
  - name: a
    kubernetesVersion: v1.34.9
    providers:
    - name: aws
      version: v2.9.0
    - name: in-cluster
      type: ipam
      version: v1.0.3
  - name: b
    generation: v2
    providers:
    - name: aws
      version: v2.12.0
`,
		"fleet.lock": `apiVersion: fleetctl.dev/v1alpha1
kind: FleetLock
components:
- name: aws
  type: infrastructure
  version: v2.10.0
  sha256: "` + strings.Repeat("0", 64) + `"
`,
	} {
		if err := os.WriteFile(filepath.Join(fleet, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, capi := hosts.KubernetesVersions(), components.Defaults().CAPIVersion
	awsVersions := []string{"aws:v2.9.0", "aws:v2.10.0", "aws:v2.12.0"}
	for name, tc := range map[string]struct {
		dir   string
		line  []string
		whole bool // nothing but the words
		words []string
	}{
		"Kubernetes without a repo": {empty, []string{"management", "add", "x", "--kubernetes-version", ""}, false, own},
		"Kubernetes of init":        {empty, []string{"init", "--kubernetes-version", ""}, false, own},
		"Kubernetes of the fleet":   {fleet, []string{"cluster", "add", "x", "--version", ""}, false, append([]string{"v1.34.9"}, own...)},
		"an environment without":    {empty, []string{"cluster", "add", "x", "--environment", ""}, true, nil},
		"a cluster without":         {empty, []string{"cluster", "show", ""}, true, nil},
		"providers":                 {empty, []string{"provider", "add", ""}, false, []string{"aws", "azure", "docker"}},
		"an argument":               {fleet, []string{"provider", "add", "aws:"}, true, awsVersions},
		"an argument with a type":   {fleet, []string{"provider", "add", "--type", "ipam", "in-cluster:"}, true, []string{"in-cluster:v1.0.3"}},
		"a flag":                    {fleet, []string{"management", "add", "x", "--provider", "aws:"}, true, awsVersions},
		"a flag with several": {
			fleet,
			[]string{"init", "--provider", "docker,aws:v2"},
			false,
			[]string{"docker,aws:v2.9.0", "docker,aws:v2.10.0", "docker,aws:v2.12.0"},
		},
		"several names":         {fleet, []string{"init", "--provider", "docker:v1.0.0,a"}, false, []string{"docker:v1.0.0,aws"}},
		"one of fleetctl":       {empty, []string{"provider", "add", "docker:"}, true, []string{"docker:" + capi}},
		"the core":              {empty, []string{"provider", "add", "--type", "core", "cluster-api:"}, true, []string{"cluster-api:" + capi}},
		"one that nobody knows": {empty, []string{"provider", "add", "nonsuch:"}, true, nil},
	} {
		words, directive := completed(t, tc.dir, tc.line...)
		if directive != ":4" {
			t.Errorf("%s: the directive is %s", name, directive)
		}
		for _, want := range tc.words {
			if !slices.Contains(words, want) {
				t.Errorf("%s: %q lack %s", name, words, want)
			}
		}
		if tc.whole && !slices.Equal(words, tc.words) {
			t.Errorf("%s: got %q, want %q", name, words, tc.words)
		}
	}
}

// The tags of a channel complete, the newest first, and no tags of others.
func TestTagsComplete(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	const fleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: acme
spec:
  channels:
  - name: release
    tag: v*
  - name: edge
    tag: edge-*
  environments:
  - name: dev
  - name: prod
    channel: release
  - name: far
    channel: edge
  managementClusters:
  - name: a
    providers:
    - name: aws
`
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	if words, directive := completed(t, dir, "promote", "--channel", "release", "--to", ""); len(words) > 0 || directive != ":36" {
		t.Errorf("without a Git repository: %q, %s", words, directive)
	}
	for _, arguments := range [][]string{
		{"init", "-q"},
		{"commit", "-q", "--allow-empty", "-m", "start"},
		{"tag", "v0.9.0"},
		{"tag", "v0.10.0"},
		{"tag", "edge-1.0.0"},
		{"tag", "other"},
	} {
		git := exec.CommandContext(t.Context(), "git", append(
			[]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, arguments...)...)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", arguments, err, out)
		}
	}
	for channel, want := range map[string][]string{"release": {"v0.10.0", "v0.9.0"}, "edge": {"edge-1.0.0"}, "": {}, "nonsuch": {}} {
		if words, directive := completed(t, dir, "promote", "--channel", channel, "--to", ""); !slices.Equal(words, want) || directive != ":36" {
			t.Errorf("channel %q: got %q, %s", channel, words, directive)
		}
	}
}
