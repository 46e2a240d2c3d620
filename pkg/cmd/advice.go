package cmd

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// Hints, notes and next steps name commands for whoever reads them to copy. In a fleet with several management clusters, most commands
// about one of them need --management. The texts come from packages that do not know how many there are, so it is added here, to all.

// inAdvice finds the commands in a text: between backquotes, or a text that begins with one, as a next step does.
var inAdvice = regexp.MustCompile("`fleetctl[ ][^`\n]*`|^fleetctl[ ][a-z][^`\n]*$")

// placeholder stands for a management cluster where none is known that a hint is about.
const placeholder = "NAME"

// advise completes the commands in a text with --management, where they cannot do without it.
func (f *factory) advise(text string) string {
	if !strings.Contains(text, "fleetctl ") {
		return text
	}
	return inAdvice.ReplaceAllStringFunc(text, func(found string) string {
		line := strings.Trim(found, "`")
		all := []string{}
		for _, name := range f.named(line) {
			all = append(all, strings.Replace(found, line, onManagementCluster(line, name), 1))
		}
		if len(all) == 0 {
			return found
		}
		return strings.Join(all, " and ")
	})
}

// named are the names of the management clusters that a command line of a hint has to be completed with. There are none for a command line
// that is complete.
func (f *factory) named(line string) []string {
	command, _, _ := strings.Cut(line, " #")
	words := strings.Fields(command)[1:]
	c, _, err := f.root.Find(words)
	if err != nil || c.Flags().Lookup("management") == nil || c.Annotations[withoutManagement] == worksOnAll || saysWhich(c, words) {
		return nil
	}
	about := f.about
	if name := f.flags.management; name != "" {
		about = []string{name}
	}
	repo, err := f.fleetRepo()
	switch {
	case err == nil && len(repo.ManagementClusterNames())+len(repo.StandbyNames()) < 2:
		return nil
	case len(about) > 0:
		return about
	case err != nil || c.Annotations[withoutManagement] == findsOne: // outside of a fleet repo, only a name that was given helps
		return nil
	}
	return []string{placeholder}
}

// withoutManagement is the annotation of a command that takes --management, and does without it in a fleet with several management
// clusters.
const withoutManagement = "without-management"

// The values of withoutManagement.
const (
	// worksOnAll is a command for which one name would make something else of it.
	worksOnAll = "works-on-all"
	// findsOne is a command that finds the management cluster by the rest of its command line.
	findsOne = "finds-one"
)

// doesWithout marks a command with a value of withoutManagement.
func doesWithout(c *cobra.Command, how string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[withoutManagement] = how
}

// saysWhich tells whether a command line says on its own which management cluster it is about, or is about none.
func saysWhich(c *cobra.Command, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		flag, _, _ := strings.Cut(word, "=")
		switch flag {
		case "--management", "-m", "--repo", "-C", "--all", "--kubeconfig", "--context", "--scaffold", "--help":
			return true
		case "--environment":
			return c.Name() == "bootstrap"
		}
		return false
	})
}

// onManagementCluster adds the flag to a command line, before its comment.
func onManagementCluster(line, name string) string {
	command, comment := line, ""
	if at := strings.Index(line, " #"); at >= 0 {
		command, comment = line[:at], line[at:]
	}
	bare := strings.TrimRight(command, " ")
	padding := command[len(bare):]
	flag := " --management " + diag.ShellWord(name)
	return bare + flag + padding[min(len(padding), len(flag)):] + comment
}

// aboutOf are the management clusters that a result is about, where the command line does not name one.
func aboutOf(result any) []string {
	switch r := result.(type) {
	case *change.Result:
		return r.ManagementClusters
	case *management.CredentialsReport:
		var ending []string
		for _, c := range r.Clusters {
			if c.Error == "" && slices.ContainsFunc(c.Credentials, func(held management.Credential) bool { return held.Ends != "" }) {
				ending = append(ending, c.Name)
			}
		}
		return ending
	case *status.Report:
		return []string{r.Cluster.Name}
	}
	return nil
}
