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
	"github.com/fleetctl/fleetctl/pkg/review"
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

// sumUp replaces the parts of a difference that nobody reads by a line with their size: Flux's own manifests, long manifests of a network,
// and charts of fleetctl that are new or removed.
func sumUp(diff string) string {
	all := sections(diff)
	charts := wholeCharts(all)
	var b strings.Builder
	for _, s := range all {
		chart, _, _ := strings.Cut(strings.TrimPrefix(s.name, layout.ChartsDir+"/"), "/")
		generated := review.Generated(s.name, s.added+s.removed)
		switch {
		case generated != "":
			b.WriteString(s.summary(generated))
		case strings.HasPrefix(s.name, layout.ChartsDir+"/") && charts[chart] != nil:
			b.WriteString(charts[chart].summary(chart))
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// summary is the head of a section, and a line with its size in place of the rest. of names its content.
func (s section) summary(of string) string {
	head, _, _ := strings.Cut(s.text, "\n@@ ")
	return strings.TrimSuffix(head, "\n") + "\n" + beginsSummary + s.lines() + " of " + of + "\n"
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

// wholeChart is a chart that comes to the repo, or leaves it.
type wholeChart struct {
	files, lines int
	isGone, told bool
}

// summary sums up all files of a chart at the first of them, and is empty for the others.
func (c *wholeChart) summary(name string) string {
	if c.told {
		return ""
	}
	c.told = true
	dir := layout.ChartsDir + "/" + name
	size := plain.Count(c.files, "file") + ", " + plain.Count(c.lines, "line")
	if c.isGone {
		return fmt.Sprintf("--- a/%s\n+++ %s\n%s%s less: the chart of flavour %s\n", dir, os.DevNull, beginsSummary, size, name)
	}
	return fmt.Sprintf("--- %s\n+++ b/%s\n%s%s of the chart of flavour %s, as fleetctl brings it\n", os.DevNull, dir, beginsSummary, size,
		name)
}

// wholeCharts are the charts of fleetctl whose Chart.yaml is among the new or the removed files. A team reads its own charts in full.
func wholeCharts(all []section) map[string]*wholeChart {
	charts := map[string]*wholeChart{}
	for _, s := range all {
		dir, name := path.Split(s.name)
		if (s.isNew || s.isGone) && name == "Chart.yaml" && path.Dir(path.Clean(dir)) == layout.ChartsDir &&
			fleetrepo.BringsChart(path.Base(dir)) {
			charts[path.Base(dir)] = &wholeChart{isGone: s.isGone}
		}
	}
	for _, s := range all {
		rest, ok := strings.CutPrefix(s.name, layout.ChartsDir+"/")
		chart, _, _ := strings.Cut(rest, "/")
		if c := charts[chart]; ok && c != nil {
			c.files++
			c.lines += s.added + s.removed
		}
	}
	return charts
}

// generatedFile sums up the changed objects of a file that nobody reads one by one.
type generatedFile struct {
	of      string
	objects int
	total   section
	told    bool
}

// generatedFiles are those of a report, by their names.
func generatedFiles(r *review.Report) map[string]*generatedFile {
	files := map[string]*generatedFile{}
	for name, of := range r.Generated() {
		files[name] = &generatedFile{of: of}
	}
	for i := range r.Objects {
		f := files[r.Objects[i].File]
		if f == nil {
			continue
		}
		f.objects++
		for _, s := range sections(r.Objects[i].Diff) {
			f.total.added += s.added
			f.total.removed += s.removed
		}
	}
	return files
}

// summary sums up all objects of a file at the first of them, and is empty for the others.
func (f *generatedFile) summary(name string) string {
	if f.told {
		return ""
	}
	f.told = true
	return fmt.Sprintf("%s%s, %s of %s, from %s; -v shows them\n", beginsSummary, plain.Count(f.objects, "object"), f.total.lines(),
		f.of, name)
}
