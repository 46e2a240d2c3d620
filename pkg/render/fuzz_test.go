package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// With any content of a file, each problem has its place in the file, and the objects are the same that a YAML library finds, which does
// not know how this package splits a stream. A namespace is set where a decoder and an encoder would put it.
func FuzzParse(f *testing.F) {
	content, err := os.ReadFile("../../templates/testdata/golden/in-memory-smallest.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	object := "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"
	for _, text := range []string{
		"\ufeff# c\n" + object + "---\n# nothing\n--- # c\n" + object + "...\n",
		"---\r\n" + object + "--- {apiVersion: v1, kind: B, metadata: {name: b, namespace: n}}\n",
		object + "data:\n  x: |\n    ---\n    a\n  y: \"a\n    --- b\"\n---", "%YAML 1.1\n---\n" + object, object + "...\n---x: y\n",
		"a: [\n---\n" + object, object + "# \x00",
		"apiVersion: v1\nkind: A\"b\nmetadata:\n  name: a\n",
		"apiVersion: v1\nkind: AList\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: \"a\\\\\", labels: {namespace: '}\"'}, uid: " +
			"null}}\n- {apiVersion: v1, kind: BList, items: []}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		objects, findings := parse("a.yaml", src)
		lines := bytes.Count(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), []byte("\n")) + bytes.Count(src, []byte("\r")) + 1
		for _, found := range findings {
			whole := found.Line == 0 && found.Rule == RuleScreen // a file that is too large is so nowhere
			if found.Line < 1 && !whole || found.Line > lines+1 || found.Summary == "" {
				t.Errorf("%v is no place in %d lines", found, lines)
			}
		}
		for _, c := range objects {
			if c.source.Line < 1 || c.source.Line > lines {
				t.Errorf("%v is no place in %d lines", c.source, lines)
			}
			sameNamespace(t, c)
		}
		if len(findings) > 0 {
			return
		}
		want, ok := identities(src)
		if !ok {
			return // what only the library that Flux has takes: names that are the same, say
		}
		got := make([]identity, 0, len(objects))
		for _, c := range objects {
			got = append(got, c.identity)
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %v; the library finds %v", got, want)
		}
	})
}

// sameNamespace compares the two ways to give an object a namespace.
func sameNamespace(t *testing.T, c *content) {
	t.Helper()
	want, err := c.with(func(fields map[string]any) {
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			metadata["namespace"] = "there"
		}
	})
	if err != nil {
		return
	}
	canonical, err := c.with(func(map[string]any) {})
	if err != nil || !bytes.Equal(canonical.json, c.json) {
		return // numbers that are written in another way
	}
	got, err := c.withNamespace("there")
	if err != nil || !bytes.Equal(got.json, want.json) || got.identity != want.identity {
		t.Errorf("got\n%s\nwant\n%s (%v)", got.json, want.json, err)
	}
}

// identities are the identities of the objects in a stream, as the library finds them.
func identities(src []byte) ([]identity, bool) {
	all := []identity{}
	for decoder := yaml.NewDecoder(bytes.NewReader(src)); ; {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, true
		}
		if err != nil {
			return nil, false
		}
		if document == nil {
			continue
		}
		text, err := json.Marshal(document)
		if err != nil {
			return nil, false
		}
		c, err := newContent(text)
		if err != nil {
			return nil, false
		}
		objects, err := c.flatten()
		if err != nil {
			return nil, false
		}
		for _, o := range objects {
			all = append(all, o.identity)
		}
	}
}
