package render

import (
	"strings"
	"testing"
)

// What goes beyond the most that a fleet may be is not taken, and is named, with what most of it comes from. What comes later and fits is.
func TestTotal(t *testing.T) {
	all := func(n, size int) (out []*Object) {
		for range n {
			out = append(out, &Object{JSON: make([]byte, size)})
		}
		return out
	}
	var sum total
	large, web := Owner{KindHelmRelease, "a", "large"}, Owner{KindHelmRelease, "a", "web"}
	if found := sum.add(large, Source{}, all(1, maxTotal-1000), 0); found != nil {
		t.Errorf("what fits is refused: %v", found)
	}
	found := sum.add(web, Source{File: "web.yaml", Line: 3}, all(2, 600), 0)
	if len(found) != 1 {
		t.Fatalf("what does not fit is taken: %v", found)
	}
	for _, want := range []string{
		"web.yaml:3: ", "HelmRelease a/web: with its 2 objects", "512 MiB", "Most of it comes from HelmRelease a/large (511 MiB)",
	} {
		if !strings.Contains(found[0].String(), want) {
			t.Errorf("%q lacks %q", found[0].String(), want)
		}
	}
	if found := sum.add(web, Source{}, all(1, 600), 0); found != nil {
		t.Errorf("what fits is refused: %v", found)
	}
	sum = total{objects: MaxObjects - 1}
	if sum.add(web, Source{}, all(1, 1), 0) != nil || sum.add(web, Source{}, all(1, 1), 0) == nil {
		t.Error("the number of objects is not bounded")
	}
	sum = total{}
	if sum.add(web, Source{}, nil, maxTotal/sizeOfTarget+1) == nil {
		t.Error("the number of clusters that objects are applied to is not bounded")
	}
}
