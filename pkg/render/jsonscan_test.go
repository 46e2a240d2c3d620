package render

import (
	"bytes"
	"testing"
)

// A namespace that is put into the text is where a decoder and an encoder would put it.
func TestWithNamespace(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","ownerReferences":[]},"spec":{"metadata":{"name":"b"}}}`,
		`{"apiVersion":"v1","data":{"metadata":"{\"name\":\"x\"}","x":"\\"},"kind":"A","metadata":{"annotations":{"a":"}\",{"},"labels":{},"name":"a","uid":null},"z":[1,{"a":[]},true]}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"labels":{"namespace":"n"},"name":"a"}}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","namespace":"","z":1}}`,
	} {
		c, err := newContent([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.with(func(fields map[string]any) { fields["metadata"].(map[string]any)["namespace"] = "there" })
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.withNamespace("there")
		if err != nil || !bytes.Equal(got.json, want.json) || got.identity != want.identity {
			t.Errorf("got\n%s\nwant\n%s (%v)", got.json, want.json, err)
		}
		if !bytes.Equal(c.json, []byte(text)) {
			t.Errorf("the object has changed: %s", c.json)
		}
	}
}
