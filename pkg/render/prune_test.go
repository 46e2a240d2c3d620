package render

import (
	"os"
	"testing"
	"time"
)

// What was written longest ago goes first, and no more than has to.
func TestPrune(t *testing.T) {
	c := newCache(t.TempDir())
	object, err := newContent([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	keys := []key{digest([]byte("1")), digest([]byte("2")), digest([]byte("3"))}
	size := int64(0)
	for i, k := range keys {
		c.put(k, []*content{object})
		info, err := os.Stat(c.file(k))
		if err != nil {
			t.Fatal(err)
		}
		size = info.Size()
		at := time.Now().Add(time.Duration(i-3) * time.Hour)
		if err := os.Chtimes(c.file(k), at, at); err != nil {
			t.Fatal(err)
		}
	}
	c.pruneTo(2 * size)
	for i, k := range keys {
		if all, ok := c.get(k); ok != (i > 0) || ok && string(all[0].json) != string(object.json) {
			t.Errorf("entry %d: there is %v", i+1, ok)
		}
	}
}
