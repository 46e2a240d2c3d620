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

// What a fleet repo has somebody say is shown up to here: a parser can have a complaint of megabytes, and a file as many lines with one
// each.
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

// Error lists the findings, one a line, with its hint behind it; of very many the first.
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

// Rule is what a Finding is about: Severity is that of its findings, Summary says in a sentence what it demands.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
}
