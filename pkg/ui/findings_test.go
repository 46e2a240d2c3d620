package ui

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var found = diag.Findings{
	{
		Severity: diag.SeverityError, Rule: "unknown-field", File: "providers/a b/cluster.yaml", Line: 3, Column: 5,
		Summary: "spec: 100% wrong,\nreally", Hint: "do: this",
	},
	{Severity: diag.SeverityWarning, Rule: "other", File: "fleet.yaml", Summary: "of the whole file"},
}

func TestPrintAnnotations(t *testing.T) {
	var out bytes.Buffer
	if err := PrintAnnotations(&out, "fleets/x,y:z", found); err != nil {
		t.Fatal(err)
	}
	want := "::error file=fleets/x%2Cy%3Az/providers/a b/cluster.yaml,line=3,col=5,title=fleetctl%3A unknown-field::spec: 100%25 " +
		"wrong,%0Areally%0Ado: this\n" +
		"::warning file=fleets/x%2Cy%3Az/fleet.yaml,title=fleetctl%3A other::of the whole file\n"
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
}

// The output has the fields that the schema of SARIF 2.1.0 requires.
func TestPrintSARIF(t *testing.T) {
	var out bytes.Buffer
	rules := []diag.Rule{{ID: "unknown-field", Severity: diag.SeverityError, Summary: "Every field is known."}}
	if err := PrintSARIF(&out, "fleets", rules, found); err != nil {
		t.Fatal(err)
	}
	var log map[string]any
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	has(t, log, "log", map[string][]string{"version": {"2.1.0"}})
	run := first(t, log, "runs")
	has(t, run, "run", map[string][]string{"columnKind": {"utf16CodeUnits", "unicodeCodePoints"}})
	tool, _ := run["tool"].(map[string]any)
	driver, _ := tool["driver"].(map[string]any)
	has(t, driver, "driver", map[string][]string{"name": {"fleetctl"}})
	rule := first(t, driver, "rules")
	has(t, rule, "rule", map[string][]string{"id": {"unknown-field"}, "helpUri": {rulesURL + "#unknown-field"}})
	results, _ := run["results"].([]any)
	if len(results) != 2 {
		t.Fatalf("%d results", len(results))
	}
	for _, each := range results {
		result, _ := each.(map[string]any)
		has(t, result, "result", map[string][]string{"level": {"none", "note", "warning", "error"}})
		message, _ := result["message"].(map[string]any)
		if text, _ := message["text"].(string); text == "" {
			t.Errorf("no message in %v", result)
		}
		location := first(t, result, "locations")
		physical, _ := location["physicalLocation"].(map[string]any)
		artifact, _ := physical["artifactLocation"].(map[string]any)
		if uri, _ := artifact["uri"].(string); !strings.HasPrefix(uri, "fleets/") || strings.Contains(uri, " ") {
			t.Errorf("uri %q", uri)
		}
		if region, ok := physical["region"].(map[string]any); ok && region["startLine"] != 3.0 {
			t.Errorf("region %v", region)
		}
	}
}

func first(t *testing.T, in map[string]any, field string) map[string]any {
	t.Helper()
	list, _ := in[field].([]any)
	if len(list) == 0 {
		t.Fatalf("no %s in %v", field, in)
	}
	object, _ := list[0].(map[string]any)
	return object
}

func has(t *testing.T, in map[string]any, what string, fields map[string][]string) {
	t.Helper()
	for name, allowed := range fields {
		if value, _ := in[name].(string); !slices.Contains(allowed, value) {
			t.Errorf("%s: %s is %v, not one of %v", what, name, in[name], allowed)
		}
	}
}

// Without findings the lists are there, and empty.
func TestPrintSARIFEmpty(t *testing.T) {
	var out bytes.Buffer
	if err := PrintSARIF(&out, "", nil, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"results": []`) || !strings.Contains(out.String(), `"rules": []`) {
		t.Errorf("got %s", out.String())
	}
}
