package diag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A parser may complain in megabytes, and a file may have as many mistakes: an error that a person reads has neither.
func TestErrorIsNotEndless(t *testing.T) {
	var all diag.Findings
	for i := range 100_000 {
		all = append(all, diag.Finding{Severity: diag.SeverityError, File: "a.yaml", Line: i + 1, Summary: fmt.Sprint("mistake ", i)})
	}
	all[0].Summary = strings.Repeat("key is there twice\n", 100_000)
	text := all.Error()
	if len(text) > 64<<10 || !strings.Contains(text, "a.yaml:2: mistake 1\n") || !strings.HasSuffix(text, "\nand 99,500 more") {
		t.Errorf("%d bytes, which end in %q", len(text), text[max(0, len(text)-100):])
	}
}
