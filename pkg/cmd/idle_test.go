package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// commandsBelow are the commands below c that do something, with their names.
func commandsBelow(c *cobra.Command, name string, into map[string]*cobra.Command) {
	for _, sub := range c.Commands() {
		full := strings.TrimSpace(name + " " + sub.Name())
		into[full] = sub
		commandsBelow(sub, full, into)
	}
}

// A rule that names a command or a flag that does not exist would never refuse anything.
func TestIdleRulesAreOfFlags(t *testing.T) {
	all := map[string]*cobra.Command{}
	root := Root(ui.Streams{})
	commandsBelow(root, "", all)
	for _, rule := range idleRules {
		commands := rule.commands
		if len(commands) == 0 {
			commands = []string{"cluster scale"}
		}
		for _, name := range slices.Concat(commands, rule.except) {
			c := all[name]
			if c == nil {
				t.Errorf("a rule is about `fleetctl %s`, which does not exist", name)
				continue
			}
			for _, flag := range slices.Concat(rule.flags, rule.needs, rule.against) {
				flag = strings.TrimSuffix(strings.SplitN(flag, "=", 2)[0], "!")
				if c.Flags().Lookup(flag) == nil && root.PersistentFlags().Lookup(flag) == nil {
					t.Errorf("a rule is about `fleetctl %s --%s`, which does not exist", name, flag)
				}
			}
		}
	}
}

// Every flag that would have no effect is an error that names it. Flags that have an effect pass.
func TestIdleFlags(t *testing.T) {
	isolate(t)
	for line, refused := range map[string]string{
		"cluster scale shop --control-plane 3 --forge github":                 "--forge has no effect without --pr",
		"cluster scale shop --control-plane 3 --ssh-key-file id":              "--ssh-key-file has no effect without --push or --pr",
		"cluster scale shop --control-plane 3 --git-token-file t --commit":    "--git-token-file has no effect without --push or --pr",
		"cluster scale shop --control-plane 3 --no-verify --dry-run":          "--no-verify has no effect without --commit or --push or --pr",
		"cluster scale shop --control-plane 3 --no-verify --push=false":       "--no-verify has no effect",
		"cluster scale shop --control-plane 3 --no-verify --commit --dry-run": "",
		"cluster scale shop --control-plane 3 --ssh-key-file id --push":       "",
		"cluster scale shop --control-plane 3 --no-verify=false":              "",
		"feature pause ingress --now --no-verify":                             "--no-verify has no effect",
		"ci add --forge gitlab":                                                   "",
		"promote --ssh-key-file id --no-verify":                                   "",
		"promote --status --skip-health":                                          "--skip-health has no effect with --status",
		"promote --status --push":                                                 "--push has no effect with --status",
		"cluster remove shop --timeout 5m":                                        "--timeout has no effect without --wait",
		"cluster remove shop --kubeconfig k":                                      "--kubeconfig has no effect without --wait",
		"cluster remove shop --cancel --wait --push":                              "--wait has no effect with --cancel",
		"cluster upgrade shop --version v1.36.3 --skip-health --context c":        "--context has no effect with --skip-health",
		"environment pause dev --kubeconfig k --push":                             "--kubeconfig has no effect without --now",
		"feature resume hello --management m":                                     "--management has no effect without --now",
		"connect --forget --merge-kubeconfig":                                     "--merge-kubeconfig has no effect with --forget",
		"connect --forget -o json":                                                "--output has no effect with --forget",
		"identity add a --environment dev --provider azure --role-arn r":          "--role-arn has no effect without --provider aws",
		"identity add a --environment dev --provider aws --tenant-id t":           "--tenant-id has no effect without --provider azure",
		"identity add a --environment dev --provider aws --type WorkloadIdentity": "--type has no effect without --provider azure",
		"identity add a --environment dev --provider vsphere --issuer i":          "--issuer has no effect without --provider aws or --provider azure",
		"identity add a --environment dev --provider vsphere --secret s":          "",
		"init --manifest-dir out":                                                 "--manifest-dir has no effect without --dry-run",
		"init --manifest-dir out --dry-run":                                       "",
		"init --scaffold --merge-kubeconfig":                                      "--merge-kubeconfig has no effect with --scaffold",
		"upgrade apply --manifest-dir out":                                        "--manifest-dir has no effect without --dry-run",
		"lock --check --pr":                                                       "--pr has no effect with --check",
		"render --output-dir out -o json":                                         "--output has no effect with --output-dir",
		"restore --source-is-gone --velero-namespace backups":                     "--velero-namespace has no effect without --fence-only",
		"restore --abort --snapshot 20261001T120000Z-abcdef":                      "--snapshot has no effect with --abort",
		"standby activate spare --abort --from here":                              "--from has no effect with --abort",
		"secret encrypt x.sops.yaml --name db":                                    "--name has no effect without --from-file or --from-literal",
		"secret rotate --offline":                                                 "--offline has no effect without --new-key",
		"status --interval 5s":                                                    "--interval has no effect without --watch",
		"status --watch --interval 5s":                                            "",
		"validate --rules --strict":                                               "--strict has no effect with --rules",
		"validate --rules charts":                                                 "--rules lists all rules",
		"host logs --lines 5":                                                     "--lines has no effect without a program",
		"host logs etcd --lines 5":                                                "",
		"host logs etcd -o json":                                                  "--output json has no effect: a log is printed as it is",
		"host logs -o json":                                                       "",
		"host exec -o json -- true":                                               "--output json has no effect",
		"kubeconfig -o json":                                                      "--output json has no effect: a kubeconfig is YAML",
		"kubeconfig -o yaml":                                                      "",
		"cluster kubeconfig shop -o json":                                         "--output json has no effect: a kubeconfig is YAML",
		"backup -m aws --to snapshots --ssh-key-file id":                          "--ssh-key-file has no effect with --to snapshots",
		"backup -m aws --to oci://r/p --git-token-file t":                         "--git-token-file has no effect with --to oci://r/p",
		"orphans --ssh-key-file id":                                               "--ssh-key-file has no effect without --delete",
		"orphans --git-token-file t":                                              "--git-token-file has no effect without --delete",
		"orphans --gone mgmt":                                                     "--gone has no effect without --delete",
		"orphans --yes":                                                           "--yes has no effect without --delete",
		"backup -m aws --to branch:snapshots --ssh-key-file id":                   "",
	} {
		t.Run(line, func(t *testing.T) {
			_, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(line)...)...)
			if refused == "" && err != nil && strings.Contains(err.Error(), " no effect") {
				t.Fatalf("refused: %v", err)
			}
			if refused != "" && (err == nil || !strings.Contains(err.Error(), refused) || diag.Code(err) != diag.ExitUsage || diag.Hint(err) == "") {
				t.Fatalf("error: %v, code %d, hint %q", err, diag.Code(err), diag.Hint(err))
			}
		})
	}
}

// A variable or a configuration file sets flags of many commands, and not all of them use each.
func TestIdleFlagsFromOutside(t *testing.T) {
	isolate(t)
	t.Setenv("FLEETCTL_SSH_KEY_FILE", "id")
	t.Setenv("FLEETCTL_OUTPUT", "json")
	t.Setenv("FLEETCTL_SKIP_PREFLIGHT", "memory")
	for _, line := range []string{"cluster scale shop --control-plane 3", "render --output-dir out", "connect --forget", "drill"} {
		if _, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, strings.Fields(line)...)...); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
