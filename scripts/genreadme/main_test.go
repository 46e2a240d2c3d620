package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const charts = "../../templates/charts"

// Every chart has a README, and it says what the chart's schema says.
func TestCurrent(t *testing.T) {
	entries, err := os.ReadDir(charts)
	if err != nil || len(entries) == 0 {
		t.Fatalf("no charts (%v)", err)
	}
	for _, e := range entries {
		was, now, err := readme(filepath.Join(charts, e.Name(), "README.md"))
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		} else if string(was) != string(now) {
			t.Errorf("%s: README.md is not what values.schema.json says: run make docs and commit the result", e.Name())
		}
	}
}

func TestReadme(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"README.md": "# x\n\n" + begin + "old\n" + end + "\nThe rest.\n",
		"values.schema.json": `{"required": ["z"], "examples": [{"z": "v1", "a": [{"b": 1}]}], "properties": {
			"z": {"type": "string", "description": "Last, yet first | here."},
			"a": {"type": "array", "description": "A list.", "items": {"properties": {"b": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "description": "A number."}}}},
			"c": {"type": "object", "description": "A group.", "properties": {"d": {"type": "string", "enum": ["x", "y"], "description": "A choice."}}}}}`,
		"values.yaml": "z: ''\na: []\nc: {d: x}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, now, err := readme(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# x\n", "```yaml\nz: v1\na:\n  - b: 1\n```", "| `z` | text | required | Last, yet first \\| here. |\n| `a` | list |  | A list. |\n",
		"| `a[].b` | number, 1 to 3 | `2` | A number. |", "| `c.d` | `x`, `y` | `x` | A choice. |", "\nThe rest.\n",
	} {
		if !strings.Contains(string(now), want) {
			t.Errorf("%q is missing in:\n%s", want, now)
		}
	}
	if strings.Contains(string(now), "old") {
		t.Errorf("the old part is still there:\n%s", now)
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readme(filepath.Join(dir, "README.md")); err == nil {
		t.Error("a README without marks: want an error")
	}
}
