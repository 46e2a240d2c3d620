package render

import "testing"

// The line of a separator may end in spaces and tabs, and in a comment. What comes after it is a document of its own, on its own line.
func TestSeparators(t *testing.T) {
	const a, b = "kind: A\napiVersion: v1\nmetadata: {name: a}\n", "kind: B\napiVersion: v1\nmetadata: {name: b}\n"
	for _, separator := range []string{"---\n", "--- \n", "---\t\n", "--- \t \n", "---\r\n", "---\t\r\n", "---\t# b\n", "--- # b\n"} {
		all, findings := parse("x.yaml", []byte(a+separator+b))
		if len(findings) > 0 || len(all) != 2 || all[1].Kind != "B" || all[1].source.Line != 5 {
			t.Errorf("%q: %d objects, %v", separator, len(all), findings)
		}
	}
}
