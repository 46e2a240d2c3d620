package review

import (
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/layout"
)

// mostOfNetwork bounds the changed lines of one manifest of a network that people read. The manifests of networks come from their projects,
// with CRDs of thousands of lines.
const mostOfNetwork = 200

// Generated names what a file of the fleet repo has, if nobody reads this many changed lines of it: Flux's own manifests, or long manifests
// of a network. It is "" for any other file.
func Generated(file string, lines int) string {
	switch {
	case path.Base(file) == layout.ComponentsFile:
		return "Flux's own manifests"
	case lines > mostOfNetwork && strings.HasPrefix(file, layout.CNIDir("")+"/"):
		return "the manifests of a network"
	}
	return ""
}

// Generated are the files whose changed objects nobody reads one by one, and what each file has.
func (r *Report) Generated() map[string]string {
	lines := map[string]int{}
	for i := range r.Objects {
		lines[r.Objects[i].File] += changedLines(r.Objects[i].Diff)
	}
	files := map[string]string{}
	for file, n := range lines {
		if of := Generated(file, n); of != "" {
			files[file] = of
		}
	}
	return files
}

// changedLines counts the lines that a difference adds and removes, without those of its header.
func changedLines(diff string) int {
	return max(strings.Count(diff, "\n+")+strings.Count(diff, "\n-")-1, 0)
}
