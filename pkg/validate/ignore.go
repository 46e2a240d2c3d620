package validate

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ignore is a comment that silences a rule: `# fleetctl:ignore RULE reason`. At the end of a line it is for that line. On the comment is on
// a line of its own it is for the line below, and above a document for the whole document.
type ignore struct {
	rule string
	line int
	// from and to are the first and the last line that the comment is for.
	from, to int
	own      bool // a line of its own
	used     bool
}

const ignoreMarker = "fleetctl:ignore"

// The marker follows the beginning of a comment: of YAML and most other formats, of Go and JavaScript, of HTML and Markdown, of Helm's
// templates.
var ignorePattern = regexp.MustCompile(
	`(?:^|\s)(?:#|//|<!--|\{\{-?\s*/\*)\s*fleetctl:ignore(?:\s+([^\s]+))?(?:[ \t]+(.*?))?\s*(?:-->|\*/\s*-?\}\})?\s*$`)

// parseIgnores finds the comments of a file that ignore findings, and reports the incomplete ones.
func parseIgnores(name string, content []byte, isYAML bool) ([]*ignore, diag.Findings) {
	if !bytes.Contains(content, []byte(ignoreMarker)) {
		return nil, nil
	}
	var ignores []*ignore
	var findings diag.Findings
	lines := bytes.Split(content, []byte("\n"))
	for i, line := range lines {
		m := ignorePattern.FindSubmatchIndex(line)
		if len(m) == 0 || isYAML && bytes.IndexByte(line[:m[1]], '#') < 0 {
			continue
		}
		column := m[0] + 1 + len(line[m[0]:]) - len(bytes.TrimLeft(line[m[0]:], " \t"))
		rule, reason := group(line, m, 1), strings.TrimSpace(group(line, m, 2))
		switch {
		case rule == "":
			findings = append(findings, finding(RuleIgnore, name, i+1, column, "the comment names no rule", "write: # "+ignoreMarker+" RULE reason"))
			continue
		case !isRule(rule):
			f := finding(RuleIgnore, name, i+1, column, fmt.Sprintf("there is no rule %.60q", rule), "`fleetctl validate --rules` lists them")
			if nearest := diag.Nearest(rule, ruleIDs()); nearest != "" {
				f.Hint = "did you mean " + nearest + "?"
			}
			findings = append(findings, f)
			continue
		case reason == "":
			findings = append(findings, finding(RuleIgnore, name, i+1, column, "the comment gives no reason",
				"write after the rule why it does not hold here"))
			continue
		}
		ig := &ignore{rule: rule, line: i + 1, from: i + 1, to: i + 1, own: len(bytes.TrimSpace(line[:m[0]])) == 0}
		if ig.own {
			ig.to = below(lines, i)
		}
		ignores = append(ignores, ig)
	}
	return ignores, findings
}

// below is the number of the line that a comment in line i is for: the next line that is neither empty nor a comment.
func below(lines [][]byte, i int) int {
	for j := i + 1; j < len(lines); j++ {
		text := bytes.TrimSpace(lines[j])
		if len(text) > 0 && text[0] != '#' {
			return j + 1
		}
	}
	return i + 1
}

func group(line []byte, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return string(line[m[2*n]:m[2*n+1]])
}

// settleIgnores extends the comments above a document to the whole document.
func (f *file) settleIgnores() {
	for _, ig := range f.ignores {
		for _, d := range f.documents {
			if ig.own && ig.line >= d.start && ig.line < d.node.Line {
				ig.from, ig.to = d.start, d.end
			}
		}
	}
}

// silence removes the findings that comments silence, and reports the comments that silence none.
func (t *tree) silence(findings diag.Findings) (left diag.Findings, silenced int) {
	for _, f := range t.files {
		f.settleIgnores()
	}
	for _, found := range findings {
		f := t.byPath[found.File]
		if f == nil || !f.silences(found) {
			left = append(left, found)
			continue
		}
		silenced++
	}
	for _, f := range t.files {
		for _, ig := range f.ignores {
			if !ig.used && !f.excluded {
				left = append(left, finding(RuleIgnoreUnused, f.path, ig.line, 0,
					fmt.Sprintf("nothing here breaks the rule %s", ig.rule), "remove the comment"))
			}
		}
	}
	return left, silenced
}

func (f *file) silences(found diag.Finding) bool {
	if slices.Contains(notSilenced, found.Rule) && !(f.unread && slices.Contains(singleFile, found.Rule)) {
		return false
	}
	silent := false
	for _, ig := range f.ignores {
		if ig.rule == found.Rule && found.Line >= ig.from && found.Line <= ig.to {
			ig.used, silent = true, true
		}
	}
	return silent
}

// notSilenced are the rules that no comment can silence, because the other rules depend on them. About a file that Flux does not read,
// no rule does.
var notSilenced = []string{RuleSyntax, RuleLimit, RuleIgnore, RuleIgnoreUnused, RuleNothing}
