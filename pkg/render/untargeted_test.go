package render

import "testing"

// Only a list of operations needs a target: kustomize takes an object for a patch that names its own target.
func TestNeedsTarget(t *testing.T) {
	for text, want := range map[string]bool{
		"- op: remove\n  path: /spec/a\n":                             true,
		"- {op: add, path: /a, value: 1}\n- {op: remove, path: /b}\n": true,
		`[{"op": "remove", "path": "/spec/a"}]`:                       true,
		"- &a {op: remove, path: /a}\n- *a\n":                         true,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n":        false,
		"- apiVersion: v1\n  kind: Service\n":                         false,
		"- op\n":                                                      false, "[]": false, "": false, "- op: [": false, "op: remove": false,
	} {
		if got := NeedsTarget(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCheckTargetPath(t *testing.T) {
	for path, valid := range map[string]bool{
		"a": true, "a.b": true, "a[0]": true, "a[0].b": true, "a[0][1]": true, `a.example\.com/b`: true, "a-b_c": true, "a/b": true,
		".a": false, "a.": false, "a..b": false, "[0]": false, ".": false, `a\`: false, "a[0]b": false, "a[70000]": false,
	} {
		if err := CheckTargetPath(path); (err == nil) != valid {
			t.Errorf("%q: %v", path, err)
		}
	}
}
