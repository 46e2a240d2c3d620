package diag

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Severity of a Finding.
type Severity string

// The severities, gravest first. Only an Error makes a command fail.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Finding is one thing wrong at one place. Line and Column count from 1; 0 means unknown.
type Finding struct {
	Severity Severity `json:"severity"`
	Rule     string   `json:"rule,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Summary  string   `json:"summary"`
	Hint     string   `json:"hint,omitempty"`
	// Gist is Summary without what only tells one object from another; "": Summary itself. Findings of one gist say the same of other places.
	Gist string `json:"-"`
}

// Limits for texts from a fleet repo: a parser's message can have megabytes, and a file can have as many lines with a message each.
const (
	// MaxSummary is how many bytes of a summary are shown.
	MaxSummary = 4 << 10
	maxListed  = 500
)

// String is "file:line:column: summary", without what is unknown: editors and terminals make a link of it.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(plain.Unbroken(f.File))
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
			if f.Column > 0 {
				fmt.Fprintf(&b, ":%d", f.Column)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(plain.Clip(plain.Unbroken(f.Summary), MaxSummary))
	return b.String()
}

// Findings is an error that carries all problems at once.
type Findings []Finding

// Error lists the findings, one a line, each with its hint. Of very many findings it lists the first.
func (fs Findings) Error() string {
	lines := make([]string, 0, min(len(fs), maxListed+1))
	for i, f := range fs {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %s more", plain.Thousands(len(fs)-i)))
			break
		}
		line := f.String()
		if f.Hint != "" {
			line += " (" + plain.Unbroken(f.Hint) + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Err returns fs as an error if any of them is of SeverityError, else nil.
func (fs Findings) Err() error {
	for _, f := range fs {
		if f.Severity == SeverityError {
			return fs
		}
	}
	return nil
}

// Rule is the rule of a Finding. Severity is the severity of its findings. Summary says in one sentence what the rule requires.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
}
