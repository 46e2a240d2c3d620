package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The rules of findings about fleet.yaml.
const (
	RuleSyntax         = "syntax"
	RuleLimit          = "limit"
	RuleVersion        = "api-version"
	RuleUnknownField   = "unknown-field"
	RuleDuplicateField = "duplicate-field"
	RuleType           = "wrong-type"
	RuleRequired       = "required-field"
	RuleValue          = "invalid-value"
	RuleDuplicate      = "duplicate"
	RuleUnused         = "unused"
	RulePlainSecret    = "plain-secret"
	RuleProduction     = "production-on-branch"
)

// position is a place in a file. Line and column count from 1.
type position struct{ line, column int }

// source has the places of a fleet's fields by path, such as "spec.managementClusters[0].name".
type source struct {
	file      string
	positions map[string]position
}

// at returns the position of the field at path. If the file does not have it, it returns the position of the nearest enclosing field.
func (s *source) at(path string) position {
	for ; ; path = parentPath(path) {
		if p, ok := s.positions[path]; ok || path == "" {
			return p
		}
	}
}

// parentPath drops the last field or index of path.
func parentPath(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// fieldPath and itemPath extend path by a field or by an index.
func fieldPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func itemPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// collector gathers findings, and adds the place in the file to each.
type collector struct {
	source   *source
	findings diag.Findings
}

func (c *collector) errorf(rule, path, hint, format string, args ...any) {
	c.add(diag.SeverityError, rule, path, hint, fmt.Sprintf(format, args...))
}

func (c *collector) warnf(rule, path, hint, format string, args ...any) {
	c.add(diag.SeverityWarning, rule, path, hint, fmt.Sprintf(format, args...))
}

func (c *collector) add(severity diag.Severity, rule, path, hint, summary string) {
	f := diag.Finding{Severity: severity, Rule: rule, Summary: summary, Hint: hint}
	if path != "" {
		f.Summary = path + ": " + summary
	}
	if c.source != nil {
		p := c.source.at(path)
		f.File, f.Line, f.Column = c.source.file, p.line, p.column
	}
	c.findings = append(c.findings, f)
}

// sorted returns the findings in the order of the file.
func (c *collector) sorted() diag.Findings {
	slices.SortStableFunc(c.findings, func(a, b diag.Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return c.findings
}
