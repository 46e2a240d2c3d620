package yamledit_test

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// indented returns nested mappings, one on each line and each one column further to the right. With lists, each mapping contains a list
// with the next mapping.
func indented(levels int, lists bool) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
		if lists {
			b.WriteString(strings.Repeat(" ", i) + "-\n")
		}
	}
	return b.String() + strings.Repeat(" ", levels) + "x"
}

// deepTexts returns texts that are at least this many levels deep, each nested in another way.
func deepTexts(levels int) map[string]string {
	repeat := func(open, middle, end string) string {
		return strings.Repeat(open, levels) + middle + strings.Repeat(end, levels)
	}
	return map[string]string{
		"mappings in braces":          "x: " + repeat("{a: ", "b", "}"),
		"without blanks":              "x: " + repeat(`{"a":`, "b", "}"),
		"lists in brackets":           "x: " + repeat("[", "", "]"),
		"keys in braces":              "x: " + repeat("{? ", "b", "}"),
		"closed in texts":             "x: " + repeat(`{"}}}]": `, "b", "}"),
		"over lines":                  "x:\n " + repeat("{a:\n ", "b", "}"),
		"tagged":                      "x: " + repeat("!!map {a: ", "b", "}"),
		"JSON":                        repeat(`{"a":[`, "1", "]}"),
		"lists on one line":           repeat("- ", "a", ""),
		"keys on one line":            repeat("? ", "a", ""),
		"mappings in lines":           indented(levels, false),
		"mappings in lists":           indented(levels, true),
		"tabs":                        repeat("-\t", "a", ""),
		"in the second document":      "a: b\n---\nx: " + repeat("{a: ", "b", "}"),
		"in a document on its line":   "a: b\n--- " + repeat("{a: ", "b", "}"),
		"lines that end in \\r":       strings.ReplaceAll(indented(levels, false), "\n", "\r"),
		"lines that end in U+0085":    strings.ReplaceAll(indented(levels, false), "\n", "\u0085"),
		"lines that end in U+2028":    strings.ReplaceAll(indented(levels, false), "\n", "\u2028"),
		"lines that end in \\r\\n":    strings.ReplaceAll(indented(levels, false), "\n", "\r\n"),
		"half of it in braces":        indented(levels/2, false) + ": " + strings.Repeat("{a: ", levels/2) + "b" + strings.Repeat("}", levels/2),
		"texts that go back":          strings.ReplaceAll(indented(levels, false), "a:", "? \"b\n c\"\n:"),
		"with a mark at the start":    "\ufeffx: " + repeat("{a: ", "b", "}"),
		"behind many short documents": strings.Repeat("a: {b: c}\n---\n", 50) + repeat("{a: ", "b", "}"),
	}
}

func TestTameKnowsWhatIsDeep(t *testing.T) {
	limits := yamledit.Limits{Bytes: 8 << 20, Nodes: 500_000, Depth: 100}
	for name, text := range deepTexts(700) {
		if yamledit.Tame([]byte(text)) {
			t.Errorf("%s: tame", name)
		}
		if _, err := yamledit.ParseWithin([]byte(text), limits); !errors.Is(err, yamledit.ErrDeep) {
			var n yaml.Node
			if yaml.Unmarshal([]byte(text), &n) == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, text := range deepTexts(20) {
		if _, err := yamledit.ParseWithin([]byte(text), limits); errors.Is(err, yamledit.ErrDeep) {
			t.Errorf("%s, 20 deep: %v", name, err)
		}
	}
	_, err := yamledit.ParseWithin([]byte("a: b\nc:\n  d: "+strings.Repeat("[", 200)+strings.Repeat("]", 200)), limits)
	if line, text := yamledit.Line(err); line != 3 || !strings.HasPrefix(text, "it is nested too deep") {
		t.Errorf("line %d: %s", line, text)
	}
}

// The depth of tame texts has a bound: no text that the parser accepts is deeper.
func FuzzTame(f *testing.F) {
	for _, levels := range []int{3, 400} {
		for _, text := range deepTexts(levels) {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 || !yamledit.Tame(text) {
			return
		}
		if _, err := yamledit.ParseWithin(text, yamledit.Limits{Bytes: 1 << 20, Nodes: 1 << 20, Depth: 320}); errors.Is(err, yamledit.ErrDeep) ||
			errors.Is(err, yamledit.ErrExpands) {
			t.Errorf("%v: %.300q", err, text)
		}
	})
}

func TestTameLetsPeopleWrite(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "",
		"an object":         "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    x\n  b: [1, 2]\n",
		"a template of it":  "a: \"{{ ds.meta_data.hostname }}\"\nb: '{{ x }}'\n",
		"many documents":    strings.Repeat("a: {b: [c]}\n---\n", 200),
		"Windows":           "a: b\r\nc: d\r\n",
		"brackets in words": "a: x" + strings.Repeat("[]", 500) + "\n",
	} {
		if !yamledit.Tame([]byte(text)) {
			t.Errorf("%s is not tame", name)
		}
	}
}
