package charts

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

func TestNewer(t *testing.T) {
	if !newer("v0.10.0", "v0.9.1") || newer("v0.9.1", "v0.10.0") || newer("v0.9.1", "v0.9.1") || newer("(devel)", "v0.1.0") ||
		newer("v0.1.0", "(devel)") {
		t.Error("newer is wrong")
	}
}

// Each side's changes are merged. What both have changed is a conflict at its file, or goes as it is preferred.
func TestMerge(t *testing.T) {
	file := func(path, content string) manifest.File { return manifest.File{Path: path, Content: []byte(content)} }
	base := []manifest.File{file("a", "1\n2\n3\n4\n5\n"), file("b", "1\n"), file("gone", "1\n")}
	team := []manifest.File{file("a", "1 team\n2\n3\n4\n5\n"), file("b", "team\n"), file("gone", "1\n"), file("own", "")}
	fleetctl := []manifest.File{file("a", "1\n2\n3\n4\n5 new\n"), file("b", "new\n"), file("new", "1\n")}
	for prefer, want := range map[Prefer]map[string]string{
		PreferNobody:   {"a": "1 team\n2\n3\n4\n5 new\n", "new": "1\n", "own": ""},
		PreferTeam:     {"a": "1 team\n2\n3\n4\n5 new\n", "b": "team\n", "new": "1\n", "own": ""},
		PreferFleetctl: {"a": "1 team\n2\n3\n4\n5 new\n", "b": "new\n", "new": "1\n", "own": ""},
	} {
		merged, conflicts := Merge(base, team, fleetctl, prefer)
		if len(merged) != len(want) {
			t.Errorf("prefer %q: got %d files, want %d", prefer, len(merged), len(want))
		}
		for _, f := range merged {
			if string(f.Content) != want[f.Path] {
				t.Errorf("prefer %q: %s is %q, want %q", prefer, f.Path, f.Content, want[f.Path])
			}
		}
		switch {
		case prefer != PreferNobody && len(conflicts) > 0:
			t.Errorf("prefer %q: %v", prefer, conflicts)
		case prefer == PreferNobody && (len(conflicts) != 1 || conflicts[0].File != "b" || conflicts[0].Line != 1):
			t.Errorf("conflicts: %+v", conflicts)
		}
	}
}
