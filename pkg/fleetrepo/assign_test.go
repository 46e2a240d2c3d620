package fleetrepo

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func mustAssign(t testing.TB, all ...string) []Assignment {
	t.Helper()
	out, err := ParseAssignments(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAssignments(t *testing.T) {
	values, err := Assign(map[string]any{"a": map[string]any{"b": 1}, "gone": 1}, mustAssign(t,
		"a.c=x=y", "pools[0].name=p", "pools[0].replicas=3", "on=true", "quoted='1.36'", "list=[1, 2]", "empty=", "gone=null"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": map[string]any{"b": 1, "c": "x=y"}, "pools": []any{map[string]any{"name": "p", "replicas": 3}}, "on": true, "quoted": "1.36",
		"list": []any{1, 2}, "empty": "", "gone": nil,
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, bad := range []string{"a", "a..b=1", "a=[", "a[x]=1"} {
		if _, err := ParseAssignments([]string{bad}); diag.Code(err) != diag.ExitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{"a.b.c=1", "a[0]=1", "pools[1].name=x"} {
		if _, err := Assign(maps.Clone(map[string]any{"a": map[string]any{"b": 1}}), mustAssign(t, bad)); diag.Code(err) != diag.ExitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
