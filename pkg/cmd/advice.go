package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// Users copy the commands in hints, notes and next steps. In a fleet with several management clusters, most commands about one of them need
// --management. Hints come from packages that do not know how many management clusters the fleet has. So advise adds the flag to all texts.

// inAdvice matches a command of fleetctl in a text: between backquotes, or as the whole text, as in a next step.
var inAdvice = regexp.MustCompile("`fleetctl[ ][^`\n]*`|^fleetctl[ ][a-z][^`\n]*$")

// placeholder stands for the name of a management cluster in a hint, if fleetctl does not know which one the hint is about.
const placeholder = "NAME"

// advise adds --management to the commands in a text that need it.
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

// adviseAbout is advise for a text about one management cluster, in a report about several.
func (f *factory) adviseAbout(name, text string) string {
	defer func(before []string) { f.about = before }(f.about)
	f.about = []string{name}
	return f.advise(text)
}

// named returns the management clusters that --management has to name in a command line of a hint. It returns none if the command line is
// complete without the flag.
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
	several, err := f.severalManagementClusters()
	switch {
	case err == nil && !several:
		return nil
	case len(about) > 0:
		return about
	case err != nil || finds(c, words): // a placeholder would not help outside of a fleet repo
		return nil
	}
	return []string{placeholder}
}

// severalManagementClusters tells whether the fleet has more than one management cluster, standbys included. It decodes fleet.yaml again
// only if the file is another one, or has changed, since the last call: a report may have a hint for each of thousands of clusters, and
// fleet.yaml may be large. The command itself may edit fleet.yaml between two hints.
func (f *factory) severalManagementClusters() (bool, error) {
	dir, err := f.repoDir()
	if err != nil {
		return false, err
	}
	if dir, err = fleetrepo.Find(dir); err != nil {
		return false, err
	}
	file, err := os.Stat(filepath.Join(dir, v1alpha1.FileName)) // before Open: a later change makes the next call decode again
	if err != nil {
		return false, err
	}
	last := f.counted.Load()
	if last != nil && os.SameFile(last.file, file) && last.file.Size() == file.Size() && last.file.ModTime().Equal(file.ModTime()) {
		return last.several, last.err
	}
	next := &managementCount{file: file}
	repo, err := fleetrepo.Open(dir)
	if next.err = err; err == nil {
		next.several = len(repo.ManagementClusterNames())+len(repo.StandbyNames()) > 1
	}
	f.counted.Store(next)
	return next.several, next.err
}

// managementCount says whether a fleet.yaml declares several management clusters.
type managementCount struct {
	// file is fleet.yaml as it was before fleetctl read it.
	file    os.FileInfo
	several bool
	// err is the error of reading or decoding fleet.yaml.
	err error
}

// withoutManagement is the annotation of a command that takes --management and works without it, also in a fleet with several management
// clusters.
const withoutManagement = "without-management"

// The values of withoutManagement.
const (
	// worksOnAll marks a command that works on all management clusters. With --management it would do something else.
	worksOnAll = "works-on-all"
	// findsOne marks a command that finds the management cluster by the rest of its command line.
	findsOne = "finds-one"
	// findsOneOf marks a command that does so if the command line has an argument.
	findsOneOf = "finds-one-of"
)

// doesWithout gives a command the annotation withoutManagement with the value how.
func doesWithout(c *cobra.Command, how string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[withoutManagement] = how
}

// finds tells whether a command finds the management cluster by the rest of its command line.
func finds(c *cobra.Command, words []string) bool {
	switch c.Annotations[withoutManagement] {
	case findsOne:
		return true
	case findsOneOf:
		return len(words) > 1 && !strings.HasPrefix(words[1], "-")
	}
	return false
}

// saysWhich tells whether the words of a command line name a management cluster, or whether the command is about none.
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

// onManagementCluster adds --management to a command line, before its comment. A comment stays in its column if there is room.
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

// aboutOf returns the management clusters that a result is about. named uses them if the command line has no --management.
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
	case *why.Report:
		return []string{r.Management}
	case *why.Depth:
		return []string{r.Management}
	}
	return nil
}
