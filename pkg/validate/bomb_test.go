package validate

import (
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Whatever file of a fleet repo is made to take all memory, the file is named, and it takes none to say so.
func TestBombsInAnyFile(t *testing.T) {
	crds := knownKinds(t)
	valid := fleet(t)
	valid["charts/in-memory/more.yaml"] = "a: b\n"
	valid[".sops.yaml"] = "creation_rules: []\n"
	bombs := []string{
		bomb(),
		"itself: &itself {a: [*itself]}\n",
		"deep: " + strings.Repeat("[", 50_000) + "\n",
		"deep: " + strings.Repeat("{a: ", 300) + "a" + strings.Repeat("}", 300) + "\n",
	}
	seen := map[string]bool{}
	for i, name := range slices.Sorted(maps.Keys(valid)) {
		if !strings.HasSuffix(name, ".yaml") || strings.HasPrefix(name, "charts/in-memory/templates/") || seen[path.Base(name)] {
			continue
		}
		seen[path.Base(name)] = true // one of each kind of file
		files := maps.Clone(valid)
		files[name] += bombs[i%len(bombs)]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		findings := validate(t, files, crds).Findings
		runtime.ReadMemStats(&after)
		named := false
		for _, f := range findings {
			named = named || f.File == name
		}
		if !named {
			t.Errorf("%s with bomb %d: not named, but %v", name, i%len(bombs), findings)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1024 {
			t.Errorf("%s with bomb %d: %d MiB allocated", name, i%len(bombs), used)
		}
	}
}
