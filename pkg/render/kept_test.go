package render

import (
	"reflect"
	"testing"
)

func objectCalled(t testing.TB, name string) *content {
	t.Helper()
	c, err := newContent([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.source, c.template = Source{File: name + ".yaml", Line: 300}, "charts/x/templates/x.yaml"
	return c
}

// What a run keeps is there for the next one, with all that is known of it; a list without objects is kept, too.
func TestCacheKeepsObjects(t *testing.T) {
	c := newCache(t.TempDir())
	k, none := digest([]byte("a")), digest([]byte("none"))
	want := []*content{objectCalled(t, "a"), objectCalled(t, "a2")}
	done := c.use()
	c.put(k, want)
	c.put(none, nil)
	done()
	defer c.use()()
	if all, ok := c.get(k); !ok || !reflect.DeepEqual(all, want) {
		t.Errorf("got %v, %t", all, ok)
	}
	if all, ok := c.get(none); !ok || len(all) != 0 {
		t.Errorf("of nothing: %v, %t", all, ok)
	}
	if _, ok := c.get(digest([]byte("b"))); ok {
		t.Error("there is what was never kept")
	}
}

// Any bytes are a list of objects, or none.
func FuzzDecodeContents(f *testing.F) {
	f.Add(encodeContents([]*content{objectCalled(f, "a")}))
	f.Add(encodeContents(nil))
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, text []byte) {
		all, ok := decodeContents(text)
		if !ok {
			return
		}
		again, ok := decodeContents(encodeContents(all))
		if !ok || !reflect.DeepEqual(all, again) {
			t.Errorf("%v is written and read as %v, %t", all, again, ok)
		}
	})
}
