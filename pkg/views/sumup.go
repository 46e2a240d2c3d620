package views

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// section is the part of a difference about one file.
type section struct {
	text string
	// name of the file, relative to the top of the repo.
	name           string
	isNew, isGone  bool
	added, removed int
}

// sections are the sections of a unified difference. Other text becomes a section with text alone.
func sections(diff string) []section {
	var out []section
	old, fresh := 0, 0 // remaining lines of the hunk
	lines := strings.SplitAfter(diff, "\n")
	alone := func(line string) bool {
		starts := func(with string) bool { return strings.HasPrefix(line, with) }
		return slices.ContainsFunc([]string{"diff --git ", "mode of ", "binary files "}, starts)
	}
	for i, line := range lines {
		if line == "" {
			continue
		}
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		inHunk := old > 0 || fresh > 0
		if !inHunk && strings.HasPrefix(line, "--- ") && strings.HasPrefix(next, "+++ ") {
			out = append(out, newSection(strings.TrimSpace(line[4:]), strings.TrimSpace(next[4:])))
		} else if len(out) == 0 || !inHunk && alone(line) {
			out = append(out, section{})
		}
		at := &out[len(out)-1]
		at.text += line
		switch {
		case !inHunk && strings.HasPrefix(line, "@@ "):
			old, fresh = hunk(line)
		case !inHunk:
		case line[0] == '+':
			at.added++
			fresh--
		case line[0] == '-':
			at.removed++
			old--
		case line[0] == ' ':
			old--
			fresh--
		}
	}
	return out
}

func newSection(from, to string) section {
	s := section{isNew: from == os.DevNull, isGone: to == os.DevNull}
	s.name = strings.TrimPrefix(to, "b/")
	if s.isGone {
		s.name = strings.TrimPrefix(from, "a/")
	}
	return s
}

// hunk reads from a hunk header how many lines the hunk has of the old file and of the new one: @@ -1,2 +1,3 @@.
func hunk(line string) (old, fresh int) {
	length := func(field string) int {
		_, count, ok := strings.Cut(field, ",")
		if !ok {
			return 1
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0
		}
		return n
	}
	if fields := strings.Fields(line); len(fields) >= 3 {
		old, fresh = length(fields[1]), length(fields[2])
	}
	return old, fresh
}

// sumUp replaces the generated parts of a difference, which nobody reads, by a line with their size: Flux's own manifests, and new charts
// in the form that fleetctl brings.
func sumUp(diff string) string {
	all := sections(diff)
	charts := newCharts(all)
	var b strings.Builder
	for _, s := range all {
		chart, _, _ := strings.Cut(strings.TrimPrefix(s.name, layout.ChartsDir+"/"), "/")
		switch {
		case path.Base(s.name) == layout.ComponentsFile:
			head, _, _ := strings.Cut(s.text, "\n@@ ")
			b.WriteString(strings.TrimSuffix(head, "\n") + "\n" + beginsSummary + s.lines() + " of Flux's own manifests\n")
		case strings.HasPrefix(s.name, layout.ChartsDir+"/") && charts[chart] != nil:
			if c := charts[chart]; !c.told {
				c.told = true
				dir := layout.ChartsDir + "/" + chart
				ui.Fprintf(&b, "--- %s\n+++ b/%s\n%s%s, %s of the chart of flavour %s, as fleetctl brings it\n", os.DevNull, dir, beginsSummary,
					plain.Count(c.files, "file"), plain.Count(c.lines, "line"), chart)
			}
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// beginsSummary begins a line that stands for several others. No line of a difference begins with it.
const beginsSummary = "… "

// lines says how many lines are added, and how many are removed.
func (s section) lines() string {
	switch {
	case s.isNew, s.removed == 0:
		return plain.Count(s.added, "line")
	case s.isGone, s.added == 0:
		return plain.Count(s.removed, "line") + " less"
	}
	return fmt.Sprintf("%s more and %s less", plain.Count(s.added, "line"), plain.Thousands(s.removed))
}

// newChart is a new chart of the repo.
type newChart struct {
	files, lines int
	told         bool
}

// newCharts are the charts of fleetctl whose Chart.yaml is among the new files. A team reads its own charts in full.
func newCharts(all []section) map[string]*newChart {
	charts := map[string]*newChart{}
	for _, s := range all {
		dir, name := path.Split(s.name)
		if s.isNew && name == "Chart.yaml" && path.Dir(path.Clean(dir)) == layout.ChartsDir && fleetrepo.BringsChart(path.Base(dir)) {
			charts[path.Base(dir)] = &newChart{}
		}
	}
	for _, s := range all {
		rest, ok := strings.CutPrefix(s.name, layout.ChartsDir+"/")
		chart, _, _ := strings.Cut(rest, "/")
		if c := charts[chart]; ok && c != nil {
			c.files++
			c.lines += s.added
		}
	}
	return charts
}
