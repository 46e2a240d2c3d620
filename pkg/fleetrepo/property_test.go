package fleetrepo

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
)

var seeds = flag.Int("seeds", 4, "how many random fleets the properties are held against")

// random makes a random fleet on disk.
type random struct {
	testing.TB
	*rendertest.Fleet
	seed int
	r    *Repo
}

// randomFleets runs a test for each of some fleets. The test's name has the seed. A fleet without its own charts uses fleetctl's.
func randomFleets(t *testing.T, charts bool, test func(f *random)) {
	t.Helper()
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			fleet, err := rendertest.Random(seed)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for name, content := range fleet.Files {
				if charts || !strings.HasPrefix(name, layout.ChartsDir+"/") {
					write(t, dir, name, content)
				}
			}
			test(&random{TB: t, Fleet: fleet, seed: int(seed), r: reopen(t, dir)})
		})
	}
}

// touched are the places of a file that an edit is about: values that it changes, and fields and items that it takes out with their lines.
type touched struct{ changed, gone []yamledit.Path }

// edit makes an edit of a cluster's file, checks its effect on the rest of the file, and writes it. It returns false for an edit that is
// refused because only the file's author can make it.
func (f *random) edit(c rendertest.RandomCluster, what string, about touched, e *Edit, err error) (ok bool) {
	f.Helper()
	if err != nil {
		if c.Aliases && errors.Is(err, yamledit.ErrCannotEdit) {
			return false
		}
		f.Fatalf("%s: %v (%s) in\n%s", what, err, diag.Hint(err), must(f.r.read(c.File)))
	}
	declared := must(f.r.find(c.Environment + "/" + c.Name))
	for _, file := range e.Changes.Files() {
		if file.Path != c.File {
			f.Fatalf("%s changes %s as well", what, file.Path)
		}
		f.judge(what, declared, about, file.Content)
		write(f, f.r.Dir, file.Path, file.Content)
	}
	return true
}

// judge fails the test where an edit lost a comment, or a line that it is not about.
func (f *random) judge(what string, before *declared, about touched, after []byte) {
	f.Helper()
	fail := func(format string, args ...any) {
		f.Helper()
		f.Errorf("%s: %s\n-- before\n%s\n-- after\n%s", what, fmt.Sprintf(format, args...), before.src, after)
	}
	lines := linesOf(before.src)
	mayChange, mayGo := map[int]bool{}, map[int]bool{}
	for _, path := range about.changed {
		from, to := extent(before.node, lines, path)
		if n := yamledit.Find(before.node, path...); n != nil && n.Style&yaml.FlowStyle == 0 {
			to = from
		} else if n != nil {
			to = deepest(n)
		}
		for i := from; i <= to; i++ {
			mayChange[i] = true
		}
	}
	for _, path := range about.gone {
		from, to := extent(before.node, lines, path)
		for i := from; i > 0 && i <= to; i++ {
			mayGo[i] = true
		}
	}
	for i := range lines { // what stands below a field behind a dash moves there
		if mayGo[i+1] && strings.HasPrefix(strings.TrimLeft(lines[i], " "), "-") {
			below := i + 1
			for ; below < len(lines) && (mayGo[below+1] || strings.TrimSpace(lines[below]) == ""); below++ {
				mayGo[below+1] = true
			}
			mayChange[below+1] = true
		}
	}
	for i := len(lines); i > 0 && (mayGo[i] || strings.TrimSpace(lines[i-1]) == ""); i-- { // empty lines above the end
		mayGo[i] = true
	}
	left := linesOf(after)
	for i, line := range lines {
		if note := noteIn(line); note != "" && !mayGo[i+1] && !bytes.Contains(after, []byte(note)) {
			fail("the comment %q is lost", note)
		}
		if mayGo[i+1] || mayChange[i+1] {
			continue
		}
		at := slices.Index(left, line)
		if at < 0 {
			fail("line %d, %q, is lost, changed or elsewhere", i+1, line)
			return
		}
		left = left[at+1:]
	}
	if ended := func(b []byte) bool { return bytes.HasSuffix(b, []byte("\n")) }; ended(before.src) != ended(after) {
		fail("the end of the last line comes or goes")
	}
	if crlf := bytes.Contains(before.src, []byte("\r\n")); crlf != bytes.Contains(after, []byte("\r\n")) ||
		crlf && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
		fail("the ends of lines differ")
	}
}

// linesOf returns the lines of a text. The last line ends with a newline, also if the text does not.
func linesOf(src []byte) []string {
	text := string(src)
	if !strings.HasSuffix(text, "\n") {
		if text += "\n"; strings.Contains(text, "\r\n") {
			text = strings.TrimSuffix(text, "\n") + "\r\n"
		}
	}
	return slices.Collect(strings.Lines(text))
}

var note = regexp.MustCompile(regexp.QuoteMeta(rendertest.Note) + `\d+`)

func noteIn(line string) string {
	if at := note.FindStringIndex(line); at != nil {
		return strings.TrimRight(line[at[0]:], "\r\n")
	}
	return ""
}

// extent is the first and the last line of a field or item: all lines with a deeper indent are part of it. It is 0 if there is none.
func extent(root *yaml.Node, lines []string, path yamledit.Path) (from, to int) {
	parent := yamledit.Find(root, path[:len(path)-1]...)
	n := yamledit.Find(parent, path[len(path)-1])
	if n == nil {
		if above := yamledit.Nearest(root, path...); above.Style&yaml.FlowStyle != 0 { // it would be written there
			return above.Line, deepest(above)
		}
		return 0, 0
	}
	from, column := n.Line, n.Column
	if parent.Style&yaml.FlowStyle != 0 {
		return from, from
	}
	switch parent.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(parent.Content); i += 2 {
			if parent.Content[i].Value == path[len(path)-1] {
				from, column = parent.Content[i].Line, parent.Content[i].Column
			}
		}
	case yaml.SequenceNode: // its content may begin below its dash
		column = parent.Column
		for dash := strings.Repeat(" ", column-1) + "-"; from > parent.Line && !strings.HasPrefix(lines[from-1], dash); {
			from--
		}
	}
	to = from
	for i := from + 1; i <= len(lines); i++ {
		text := strings.TrimRight(lines[i-1], "\r\n")
		if indent := len(text) - len(strings.TrimLeft(text, " ")); strings.TrimSpace(text) != "" {
			if indent < column && i > deepest(n) {
				break
			}
			to = i
		}
	}
	return from, to
}

func deepest(n *yaml.Node) int {
	last := n.Line
	for _, inner := range n.Content {
		last = max(last, deepest(inner))
	}
	return last
}

// same fails the test unless a cluster's file is unchanged.
func (f *random) same(c rendertest.RandomCluster, what string, want []byte) {
	f.Helper()
	if got := must(f.r.read(c.File)); !bytes.Equal(got, want) {
		f.Fatalf("%s: (-want +got)\n%s", what, cmp.Diff(string(want), string(got)))
	}
}
