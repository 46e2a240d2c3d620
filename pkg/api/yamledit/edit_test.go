package yamledit

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const release = `# Who asked for it: the shop.
kind: Namespace
---
kind:   HelmRelease # odd spacing stays
spec:
  suspend: true # until Monday
  values:
    kubernetesVersion: v1.35.2   # the shop's choice
    controlPlane: {replicas: 3, size: big}
    pools:
    # for everything
    - name: general
      replicas: 2 # Tuesdays 4
      labels: {a: b}

    # ask the ML team
    - name: gpu
      kubernetesVersion: v1.34.0
      replicas: "7"
    - kubernetesVersion: v1.34.0
      name: last
    addons: []
    zones: [a, b, c]
  # the end
`

func TestEdits(t *testing.T) {
	values := func(path ...any) Path { return append(Path{"spec", "values"}, path...) }
	set := func(path Path, value any) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) { return Set(src, 1, path, value) }
	}
	remove := func(path Path) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) { return Remove(src, 1, path) }
	}
	add := func(path Path, text string) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) {
			var item yaml.Node
			if err := yaml.Unmarshal([]byte(text), &item); err != nil {
				t.Fatal(err)
			}
			return Append(src, 1, path, item.Content[0])
		}
	}
	for name, tc := range map[string]struct {
		edit     func([]byte) ([]byte, error)
		old, new string
	}{
		"number":          {set(values("pools", 0, "replicas"), 4), "replicas: 2 #", "replicas: 4 #"},
		"number for text": {set(values("pools", 1, "replicas"), 4), `replicas: "7"`, "replicas: 4"},
		"number in flow":  {set(values("controlPlane", "replicas"), 5), "replicas: 3,", "replicas: 5,"},
		"truth":           {set(Path{"spec", "suspend"}, false), "suspend: true #", "suspend: false #"},
		"the same":        {set(values("kubernetesVersion"), "v1.35.2"), "", ""},
		"new field of an item": {
			set(values("pools", 0, "kubernetesVersion"), "v1.35.2"), "replicas: 2 # Tuesdays 4\n",
			"replicas: 2 # Tuesdays 4\n      kubernetesVersion: v1.35.2\n",
		},
		"remove field": {remove(Path{"spec", "suspend"}), "  suspend: true # until Monday\n", ""},
		"remove field of item": {
			remove(values("pools", 1, "kubernetesVersion")),
			"- name: gpu\n      kubernetesVersion: v1.34.0\n", "- name: gpu\n",
		},
		"remove behind dash": {
			remove(values("pools", 2, "kubernetesVersion")),
			"- kubernetesVersion: v1.34.0\n      name: last", "- name: last",
		},
		"remove from flow":     {remove(values("controlPlane", "size")), "{replicas: 3, size: big}", "{replicas: 3}"},
		"remove first of flow": {remove(values("controlPlane", "replicas")), "{replicas: 3, size: big}", "{size: big}"},
		"remove flow item":     {remove(values("zones", 2)), "[a, b, c]", "[a, b]"},
		"remove what is not":   {remove(values("nothing", "here")), "", ""},
		"remove item":          {remove(values("pools", 1)), "    - name: gpu\n      kubernetesVersion: v1.34.0\n      replicas: \"7\"\n", ""},
		"remove first item":    {remove(values("pools", 0)), "    - name: general\n      replicas: 2 # Tuesdays 4\n      labels: {a: b}\n", ""},
		"add item": {
			add(values("pools"), "{name: new, replicas: 1}"), "      name: last\n",
			"      name: last\n    - {name: new, replicas: 1}\n",
		},
		"open an empty list": {add(values("addons"), "name: cni"), "addons: []\n", "addons:\n    - name: cni\n"},
		"new list": {
			add(Path{"spec", "postRenderers"}, "a: |\n  b\n  c\n"), "  suspend: true # until Monday\n",
			"  suspend: true # until Monday\n  postRenderers:\n    - a: |\n        b\n        c\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				if tc.old != "" && strings.Count(release, tc.old) != 1 {
					t.Fatalf("%q is not in the file once", tc.old)
				}
				want := strings.ReplaceAll(strings.Replace(release, tc.old, tc.new, 1), "\n", eol)
				got, err := tc.edit([]byte(strings.ReplaceAll(release, "\n", eol)))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// Comments in unusual places stay. Adding a value and removing it again restores the file.
func TestOddPlaces(t *testing.T) {
	set := func(path ...any) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) { return Set(src, 0, path, 1) }
	}
	add := func(path ...any) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) {
			item := &yaml.Node{}
			if err := item.Encode(map[string]any{"name": "new"}); err != nil {
				t.Fatal(err)
			}
			return Append(src, 0, path, item)
		}
	}
	remove := func(path ...any) func([]byte) ([]byte, error) {
		return func(src []byte) ([]byte, error) { return Remove(src, 0, path) }
	}
	for name, tc := range map[string]struct {
		edit     func([]byte) ([]byte, error)
		old, new string
	}{
		"first item, no last line end":       {add("a"), "b: 1\na: []", "b: 1\na:\n- name: new"},
		"the last item, no last line end":    {remove("a", 0), "b: 1\na:\n  - name: new", "b: 1\na: []"},
		"the last field, no last line end":   {remove("b"), "a: 1\nb: 2", "a: 1"},
		"behind a text, no last line end":    {remove("b"), "a: |\n  x\nb: 2", "a: |\n  x\n"},
		"behind a dash, comments below":      {remove("a", 0, "b"), "a:\n- b: 1 # b\n  # c\n  c: 2\n", "a:\n-\n  # c\n  c: 2\n"},
		"behind a dash, its own comments":    {remove("a", 0, "b"), "a:\n- b: 1\n    # b\n  c: 2\n", "a:\n- c: 2\n"},
		"an item that begins below its dash": {remove("a", 0), "a:\n-\n  # b\n  b: 1\n- c: 2\n", "a:\n- c: 2\n"},
		"a comment that looks like a dash":   {remove("a", 0), "a:\n    -\n  # -- b\n      b: 1\n    - c: 2\n", "a:\n    - c: 2\n"},
		"an item behind {…}":                 {add("a"), "a: [{b: 1}, {c: 2} ] # d\n", "a: [{b: 1}, {c: 2}, {name: new} ] # d\n"},
		"before a space":                     {remove("a", "c"), "a: { b: 1, c: 2 }\n", "a: { b: 1 }\n"},
		"lines in brackets, the first":       {remove("a", "b"), "a: {\n  b: 1, # b\n  # c\n  c: 2 # d\n  }\n", "a: {\n  # c\n  c: 2 # d\n  }\n"},
		"lines in brackets, the last":        {remove("a", "c"), "a: {\n  b: 1, # b\n  # c\n  c: 2\n  }\n", "a: {\n  b: 1 # b\n  # c\n  }\n"},
		"lines in brackets, a last comma":    {remove("a", "c"), "a: {\n  b: 1, # b\n  c: 2,\n  }\n", "a: {\n  b: 1, # b\n  }\n"},
		"below the comments of another":      {set("b"), "a: 1\n   # why\nc: {}\n", "a: 1\n   # why\nb: 1\nc: {}\n"},
		"below the comments of a list":       {add("a"), "a: []\n       # none yet\n", "a:\n       # none yet\n- name: new\n"},
		"quotes in a word":                   {add("a"), "a: [it's, {b: '}'}]\n", "a: [it's, {b: '}'}, {name: new}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				got, err := tc.edit([]byte(strings.ReplaceAll(tc.old, "\n", eol)))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.ReplaceAll(tc.new, "\n", eol), string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// Adding the first item to a list and removing it again restores the file.
func TestAddThenRemove(t *testing.T) {
	item := &yaml.Node{}
	if err := item.Encode(map[string]any{"name": "new", "replicas": 1}); err != nil {
		t.Fatal(err)
	}
	for _, list := range []Path{{"spec", "values", "addons"}, {"spec", "values", "pools"}} {
		added, err := Append([]byte(release), 1, list, item)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := Parse(added)
		if err != nil {
			t.Fatal(err)
		}
		last := len(Find(documents[1], list...).Content) - 1
		got, err := Remove(added, 1, append(list, last))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(release, string(got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", list, diff)
		}
	}
}

// RemoveItem removes a list that was added with its only item. It keeps a list that was empty before.
func TestRemoveItem(t *testing.T) {
	list := Path{"spec", "pools"}
	for name, before := range map[string]string{
		"no list":             "spec:\n  a: 1\n",
		"no list at the end":  "spec:\n  a: {b: 1}\n  c: 1",
		"no list in brackets": "spec: {a: 1}\n",
		"nothing around it":   "a: 1\nb: {}\n",
		"an empty list":       "spec:\n  pools: [] # none\n  a: 1\n",
		"one in brackets":     "spec: {pools: [], a: 1}\n",
		"one with a comment":  "spec:\n  pools: []\n    # none yet\n  a: 1\n",
		"one item":            "spec:\n  pools:\n  - b: 1\n  a: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, eol := range []string{"\n", "\r\n"} {
				src := []byte(strings.ReplaceAll(before, "\n", eol))
				item := &yaml.Node{}
				if err := item.Encode(map[string]any{"name": "new", "labels": []string{"a"}}); err != nil {
					t.Fatal(err)
				}
				added, err := Append(src, 0, list, item)
				if err != nil {
					t.Fatal(err)
				}
				documents, err := Parse(added)
				if err != nil {
					t.Fatal(err)
				}
				got, err := RemoveItem(added, 0, append(list, len(Find(documents[0], list...).Content)-1))
				if err != nil {
					t.Fatalf("%v\n%s", err, added)
				}
				if diff := cmp.Diff(string(src), string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s\nbetween them:\n%s", diff, added)
				}
			}
		})
	}
	// A list with somebody's own comments stays.
	const own = "spec:\n  pools: # ours\n    - name: new # mine\n"
	got, err := RemoveItem([]byte(own), 0, append(list, 0))
	if err != nil || string(got) != "spec:\n  pools: [] # ours\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRefusesWhatItCannotEdit(t *testing.T) {
	for src, path := range map[string]Path{
		"a: &a {b: c}\nd: *a\n":          {"d", "b"},
		"a: &a\n  b: c\n  e: f\nd: *a\n": {"a", "b"},
		"a:\n  b: c\n":                   {"a", "b"}, // a would have no fields
	} {
		if got, err := Remove([]byte(src), 0, path); !errors.Is(err, ErrCannotEdit) {
			t.Errorf("%q: got %q, %v", src, got, err)
		}
	}
}

func TestParseScreens(t *testing.T) {
	bomb := "a0: &a0 [" + strings.Repeat("x,", 9) + "]\n"
	for i := range 9 {
		name := string(rune('1' + i))
		before := string(rune('0' + i))
		bomb += "a" + name + ": &a" + name + " [" + strings.TrimSuffix(strings.Repeat("*a"+before+", ", 9), ", ") + "]\n"
	}
	for name, src := range map[string]string{
		"a bomb":    bomb,
		"too large": strings.Repeat("# x\n", MaxBytes/4+1),
		"no text":   "a: \xff",
		"no YAML":   "a: [",
	} {
		if _, err := Parse([]byte(src)); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

func TestPath(t *testing.T) {
	for text, want := range map[string]Path{
		"a[0].b":                   {"a", 0, "b"},
		`labels.example\.com/a`:    {"labels", "example.com/a"},
		`a.b\[0][1]`:               {"a", "b[0]", 1},
		`a\\.b`:                    {`a\`, "b"},
		`p[1].l.n\.x-k8s\.io/t[0]`: {"p", 1, "l", "n.x-k8s.io/t", 0},
	} {
		if got, err := ParsePath(text); err != nil || !slices.Equal(got, want) || got.String() != text {
			t.Errorf("%s: %#v, %v, back: %s", text, got, err, got)
		}
	}
	for _, text := range []string{"", ".a", "a..b", "a[x]", "a[0", "a[0]b", "a[-1]", "[0]"} {
		if got, err := ParsePath(text); err == nil {
			t.Errorf("%q: %#v", text, got)
		}
	}
}

// For every file, an edit makes exactly the requested change or returns an error, and the result can be edited again.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(release), "spec.values.pools[0].replicas", 3)
	f.Add([]byte("a: {b: [1, 2], c: 'x, y'}\n"), "a.b[1]", 0)
	f.Add([]byte("~"), "x", 0) // nothing to add to
	f.Add([]byte("---\n- a\n- b: c\n  d: e\n"), "x", 1)
	f.Fuzz(func(t *testing.T, src []byte, text string, number int) {
		path, err := ParsePath(text)
		if err != nil {
			return
		}
		item := &yaml.Node{}
		if err := item.Encode(number); err != nil {
			t.Fatal(err)
		}
		for document := range 2 {
			if got, err := Set(src, document, path, number); err == nil {
				again, err := Set(got, document, path, number)
				if err != nil || !bytes.Equal(got, again) {
					t.Fatalf("a second time: %v\n%q\n%q", err, got, again)
				}
			}
			if got, err := Append(src, document, path, item); err == nil {
				if _, err := Parse(got); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := Remove(src, document, path); err == nil {
				documents, err := Parse(got)
				if err != nil {
					t.Fatal(err)
				}
				if _, isField := path[len(path)-1].(string); isField && document < len(documents) && Find(documents[document], path...) != nil {
					t.Fatalf("%s is still there: %q", path, got)
				}
			}
		}
	})
}
