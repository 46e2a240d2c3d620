package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// idleRule says when flags of a command would have no effect. Such a flag on the command line is a usage error, because the user who typed
// it expects an effect. The rules ignore values from the environment and from the configuration file, which are for many commands. No rule
// makes a flag idle with --dry-run: it takes the flags of the run that it previews.
type idleRule struct {
	// commands are the commands that the rule is for, without "fleetctl". An empty list means every command that edits the fleet repo.
	commands []string
	// except are the commands that an empty list of commands does not mean.
	except []string
	// flags have no effect without one of needs, and no effect with one of against. Each of needs and against is the name of a flag, the
	// name and a value (provider=aws), or the name and a text that the value does not begin with (to!=branch:).
	flags, needs, against []string
	// hint says what to do instead of leaving one of the flags out; "" if there is nothing else.
	hint string
}

// idleRules are the rules of all commands. A combination that changes the meaning of a command, or that needs the fleet repo to be judged,
// is an error of the command itself: session.RemoteFlags are the flags that need a remote.
var idleRules = []idleRule{
	{except: []string{"ci add"}, flags: []string{"forge"}, needs: []string{"pr"}},
	{except: []string{"cluster transfer", "promote"}, flags: []string{"git-token-file", "ssh-key-file"}, needs: []string{"push", "pr"}},
	{except: []string{"promote"}, flags: []string{"no-verify"}, needs: []string{"commit", "push", "pr"}},
	{
		commands: []string{"backup"}, flags: []string{"git-token-file", "ssh-key-file"}, against: []string{"to!=branch:"},
		hint: "give --to branch:NAME",
	},
	{commands: []string{"bootstrap"}, flags: []string{"forge"}, needs: []string{"pr", "create-repo"}},
	{commands: []string{"cluster detach"}, flags: []string{"kubeconfig-out"}, against: []string{"abort"}},
	{commands: []string{"cluster remove"}, flags: []string{"kubeconfig", "context", "timeout"}, needs: []string{"wait"}},
	{commands: []string{"cluster remove"}, flags: []string{"wait"}, against: []string{"cancel"}},
	{commands: []string{"cluster upgrade"}, flags: []string{"kubeconfig", "context"}, against: []string{"skip-health"}},
	{
		commands: []string{
			"cluster pause", "cluster resume", "environment pause", "environment resume", "feature pause", "feature resume", "channel pause",
			"channel resume",
		},
		flags: []string{"management", "kubeconfig", "context"}, needs: []string{"now"},
	},
	{commands: []string{"connect"}, flags: []string{"merge-kubeconfig", "output"}, against: []string{"forget"}},
	{commands: []string{"identity add"}, flags: []string{"role-arn", "external-id", "trusted-arn"}, needs: []string{"provider=aws"}},
	{
		commands: []string{"identity add"}, flags: []string{"tenant-id", "client-id", "object-namespace", "type"},
		needs: []string{"provider=azure"},
	},
	{commands: []string{"identity add"}, flags: []string{"issuer"}, needs: []string{"provider=aws", "provider=azure"}},
	{
		commands: []string{"init"}, flags: []string{"skip-preflight", "source-is-gone", "merge-kubeconfig", "create-repo"},
		against: []string{"scaffold"},
	},
	{commands: []string{"init", "upgrade apply"}, flags: []string{"manifest-dir"}, needs: []string{"dry-run"}},
	{commands: []string{"lock"}, flags: []string{"pr"}, against: []string{"check"}},
	{
		commands: []string{"promote"}, flags: []string{"skip-health", "commit", "push", "pr", "no-verify", "forge"},
		against: []string{"status"},
	},
	{
		commands: []string{"orphans"}, flags: []string{"gone", "dry-run", "yes", "git-token-file", "ssh-key-file"}, needs: []string{"delete"},
	},
	{commands: []string{"render"}, flags: []string{"output"}, against: []string{"output-dir"}},
	{commands: []string{"restore"}, flags: []string{"velero-namespace"}, needs: []string{"fence-only"}},
	{
		commands: []string{"restore", "standby activate"}, flags: []string{"from", "snapshot", "pause-elsewhere", "accept-deletions"},
		against: []string{"abort"},
	},
	{commands: []string{"secret encrypt"}, flags: []string{"name", "namespace", "type"}, needs: []string{"from-file", "from-literal"}},
	{commands: []string{"secret rotate"}, flags: []string{"offline"}, needs: []string{"new-key"}},
	{commands: []string{"status"}, flags: []string{"interval"}, needs: []string{"watch"}},
	{
		commands: []string{"validate"}, flags: []string{"strict", "crds", "bundle", "offline", "local-releases", "commits-since"},
		against: []string{"rules"},
	},
}

// of tells whether the rule is for c.
func (r idleRule) of(c *cobra.Command) bool {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	if len(r.commands) > 0 {
		return slices.Contains(r.commands, name)
	}
	return editsRepo(c) && !slices.Contains(r.except, name)
}

// editsRepo tells whether c edits the fleet repo: whether it has the flags of changeFlags.
func editsRepo(c *cobra.Command) bool {
	return c.Flags().Lookup("push") != nil && c.Flags().Lookup("pr") != nil
}

// refuseIdle returns a usage error for a flag of the command line that would have no effect.
func refuseIdle(f *factory, c *cobra.Command) error {
	for _, rule := range idleRules {
		if !rule.of(c) {
			continue
		}
		given := slices.IndexFunc(rule.flags, func(flag string) bool { return f.typed(c, flag) })
		if given < 0 {
			continue
		}
		flag := "--" + rule.flags[given]
		if len(rule.needs) > 0 && !slices.ContainsFunc(rule.needs, func(other string) bool { return isOn(c, other) }) {
			others := strings.ReplaceAll("--"+strings.Join(rule.needs, " or --"), "=", " ")
			return diag.Usage("add "+others+", or leave "+flag+" out", "%s has no effect without %s", flag, others)
		}
		if i := slices.IndexFunc(rule.against, func(other string) bool { return isOn(c, other) }); i >= 0 {
			hint := "leave one of them out"
			if rule.hint != "" {
				hint += ", or " + rule.hint
			}
			return diag.Usage(hint, "%s has no effect with --%s", flag, shown(c, rule.against[i]))
		}
	}
	return nil
}

// shown returns a flag of against as the user typed it.
func shown(c *cobra.Command, flag string) string {
	if name, _, other := strings.Cut(flag, "!="); other {
		return name + " " + c.Flags().Lookup(name).Value.String()
	}
	return strings.ReplaceAll(flag, "=", " ")
}

// isOn tells whether a flag was set and is not false. For name=value, it tells whether the flag has this value, and for name!=text, whether
// the flag was set to a value that does not begin with the text. The value may come from the command line, the environment or the
// configuration file.
func isOn(c *cobra.Command, flag string) bool {
	if name, start, other := strings.Cut(flag, "!="); other {
		return isOn(c, name) && !strings.HasPrefix(c.Flags().Lookup(name).Value.String(), start)
	}
	name, value, exact := strings.Cut(flag, "=")
	given := c.Flags().Lookup(name)
	if given == nil || exact {
		return given != nil && given.Value.String() == value
	}
	return given.Changed && given.Value.String() != "false"
}

// typed tells whether a flag is on the command line.
func (f *factory) typed(c *cobra.Command, flag string) bool {
	return isOn(c, flag) && !f.settings.FromOutside(flag)
}

// typedAmong returns the flags that are on the command line of this run.
func (f *factory) typedAmong(flags []string) []string {
	var typed []string
	for _, flag := range flags {
		if f.typed(f.command, flag) {
			typed = append(typed, flag)
		}
	}
	return typed
}

// typedWords returns those of the flags that are on the command line of this run, as words of another command line.
func (f *factory) typedWords(flags []string) (words []string) {
	for _, name := range f.typedAmong(flags) {
		flag := f.command.Flags().Lookup(name)
		value := strings.Join(given(flag), ",")
		switch flag.NoOptDefVal {
		case "":
			words = append(words, "--"+name, value)
		case value:
			words = append(words, "--"+name)
		default: // its value cannot be a word of its own
			words = append(words, "--"+name+"="+value)
		}
	}
	return words
}

// refuseFormat returns a usage error for an --output on the command line that would have no effect. why says why. taken are the formats
// that have an effect.
func (f *factory) refuseFormat(why string, taken ...ui.Format) error {
	if f.format == ui.Human || slices.Contains(taken, f.format) || f.settings.FromOutside("output") {
		return nil
	}
	return diag.Usage("leave --output out", "--output %s has no effect: %s", string(f.format), why)
}
